#pragma once
// A cuBLASLt for machines without a GPU: it multiplies on the host, in memory of the fake driver. Tests load it in the place of the
// real one and look at it through fake_cublaslt_state.
//
// An algorithm serves products up to the sizes that it was asked for. It takes no more than descriptors say: attributes of the sizes
// that the library's header states, lines as long as the matrix, the workspace that was announced.
#include <cstddef>
#include <cstdint>

namespace flexor::tests {

struct FakeCublasLt {
    int asked = 0;              // for algorithms
    int multiplied = 0;         // products
    int handles = 0;            // created and not destroyed
    std::size_t workspace = 0;  // that algorithms want
    int refuse = 0;             // so many of the next products get NOT_SUPPORTED
    bool no_algorithm = false;
};

}  // namespace flexor::tests

extern "C" flexor::tests::FakeCublasLt* fake_cublaslt_state();
