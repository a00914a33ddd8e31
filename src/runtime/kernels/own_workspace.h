#pragma once
// The workspace of a library kernel: the caller's if it is large enough, else memory of the kernel's own.
#include <cstddef>
#include <memory>
#include <new>

namespace flexor::runtime {

class OwnWorkspace {
public:
    OwnWorkspace(void* given, std::size_t given_bytes, std::size_t needed) : data_(static_cast<char*>(given)) {
        if (needed == 0 || (given != nullptr && given_bytes >= needed)) return;
        own_.reset(::operator new(needed, std::align_val_t{kAlignment}, std::nothrow));
        data_ = static_cast<char*>(own_.get());
        enough_ = data_ != nullptr;
    }
    bool enough() const { return enough_; }  // false: the system gave none
    char* data() const { return data_; }     // 64-byte aligned

private:
    static constexpr std::size_t kAlignment = 64;
    struct Free {
        void operator()(void* memory) const { ::operator delete(memory, std::align_val_t{kAlignment}); }
    };
    std::unique_ptr<void, Free> own_;
    char* data_;
    bool enough_ = true;
};

}  // namespace flexor::runtime
