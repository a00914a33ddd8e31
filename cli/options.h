#pragma once
// What the command line asks for. main.cpp fills it; nothing else knows how it was spelled.
#include <cstdint>
#include <string>
#include <vector>

namespace flexor::cli {

struct Options {
    std::string file;  // the program; `ops`: the name of an op
    std::vector<std::string> inputs;
    std::string function = "main";
    std::string output;  // empty or "-": standard output
    bool json = false;

    // Of the Session.
    bool exact_only = false;
    bool interpret = false;
    int threads = 0;
    std::uint64_t soft_limit = std::uint64_t{256} << 20;
    std::uint64_t hard_limit = 0;

    std::int64_t repeat = 1;

    // dis
    bool pcs = false;
    bool positions = true;
    std::uint64_t weight_bytes = 4096;

    // stats
    bool profile = false;
    bool prometheus = false;
    bool events = false;
};

}  // namespace flexor::cli
