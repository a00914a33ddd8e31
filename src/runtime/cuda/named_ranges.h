#pragma once
// Ranges of NVTX, which a profiler shows: it names its library in NVTX_INJECTION64_PATH before the process starts.
#include <memory>
#include <string>

namespace flexor::runtime::cuda {

class NamedRanges {
public:
    // Of the profiler that the environment names, loaded once; null where there is none.
    static const NamedRanges* of_environment();
    // Of a profiler's library; null if it does not want ranges.
    static std::unique_ptr<const NamedRanges> load(const std::string& library);

    void push(const char* name) const;
    void pop() const;

private:
    using Call = void (*)();
    Call push_ = nullptr, pop_ = nullptr;
};

// A range while it lives; nothing where nobody looks.
class NamedRange {
public:
    NamedRange(const NamedRanges* ranges, const std::string& name) : ranges_(ranges) {
        if (ranges_ != nullptr) ranges_->push(name.c_str());
    }
    ~NamedRange() {
        if (ranges_ != nullptr) ranges_->pop();
    }
    NamedRange(const NamedRange&) = delete;
    NamedRange& operator=(const NamedRange&) = delete;

private:
    const NamedRanges* ranges_;
};

}  // namespace flexor::runtime::cuda
