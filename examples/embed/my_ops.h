#pragma once
// The ops of this project. Called once, before a program that uses them is loaded.
#include "flexor/error.h"

flexor::Expected<void> register_my_ops();
