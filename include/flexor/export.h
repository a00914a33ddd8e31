#pragma once

// FLEXOR_API marks what libflexor exports; everything else is hidden.
#define FLEXOR_API __attribute__((visibility("default")))
