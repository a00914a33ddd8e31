#pragma once
// How long a run will take at most, judged from the last one of the program: by the sizes of its arguments.
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "flexor/value.h"

namespace flexor::python {

class Prediction {
public:
    struct Foreseen {
        double seconds = std::numeric_limits<double>::infinity();
        bool same = false;  // the sizes are those of the last run
        bool timed = true;  // whether the run is to be timed and learned
        std::uint64_t revision = 0;
    };
    // Where no size is larger than last time, what the last run took; else that by the square of the growth of all
    // sizes together, which no product, attention or outer sum exceeds. Infinity where other ranks, integers or list
    // lengths make the runs incomparable. What depends on the values of tensors is not foreseen. Of runs of known sizes
    // that take less than kShort one in kTimedEvery is timed.
    Foreseen foresee(std::span<const Value> arguments);
    // What was foreseen of the run, and the seconds that it took. Other runs may have been learned in between.
    void learn(std::span<const Value> arguments, const Foreseen& foreseen, double seconds);

private:
    static constexpr double kShort = 5e-6;
    static constexpr std::uint32_t kTimedEvery = 16;
    std::uint32_t untimed_ = 0;          // runs since the last timed one
    std::vector<std::int64_t> extents_;  // of the last run, in the order in which its arguments have them
    double seconds_ = std::numeric_limits<double>::infinity();
    std::uint64_t revision_ = 0;  // of extents_
};

}  // namespace flexor::python
