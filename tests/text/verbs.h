#pragma once
// What a verb of the text tests gets.
#include <string>

#include "support/expected.h"

namespace flexor::tests {

struct TextCase {
    std::string name;    // path, as it stands in diagnostics
    std::string source;  // the whole text
};

// Every "; specialize: TEXT" stands in what `explain` says of the specialised program, every "; lower: TEXT" in what it
// says of kernels and executables, which are "; kernels: COUNT"; no "; never: TEXT" does. "; sizes: N=3, M=5" chooses.
Status specialize_verb(const TextCase& text);
Status lower_verb(const TextCase& text);

// Runs the program with the sizes of every "; sizes:" line (the declared ranges choose them if there is none) on the
// interpreter, the evaluator and generated code, fused and unfused, symbolic and exact, with guards that always fail,
// with regions that end at once, with caches of one entry, and with a pool that keeps nothing; all must agree, on the arguments after the call too, and on what is raised. A
// program that raises for all sizes must carry "; error:".
Status run_verb(const TextCase& text);

}  // namespace flexor::tests
