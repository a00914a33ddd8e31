#pragma once
// Where exceptions end: the public edge. Inside, only containers throw, and what stands for them, for want of memory.
#include <new>
#include <stdexcept>
#include <type_traits>

#include "support/diagnostic.h"
#include "support/expected.h"

namespace flexor::support {

// What `body` returns; OutOfMemory where the system refuses memory in it.
template <class Body>
std::invoke_result_t<Body> or_out_of_memory(const Body& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    }
    return Diagnostic(DiagnosticId::kOutOfMemory);
}

}  // namespace flexor::support
