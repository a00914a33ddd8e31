#pragma once
// Work that a fork must not cut. The child of a fork has one thread: what another thread held, or had half made, stays so
// in it for ever. A fork therefore waits until no thread stands in such a section (at most ten seconds).
//
// Laws
//  F1  Inside a section a thread waits for no lock of the host; where it asks the host, it leaves the section meanwhile,
//      and holds nothing then but ForkMutexes of data that are whole.
//  F2  Sections nest; a thread that forks inside one does not wait for itself.
//  F3  What outlives a fork and belongs to another thread (a ForkMutex it held, a list of what it is about to do) is
//      recognised by fork_generation() and made anew.
#include <atomic>
#include <cstdint>
#include <mutex>

namespace flexor::support {

class ForkSection {
public:
    ForkSection();
    ~ForkSection();
    ForkSection(const ForkSection&) = delete;
    ForkSection& operator=(const ForkSection&) = delete;
};

// Outside the sections that this thread is in.
class ForkPause {
public:
    ForkPause();
    ~ForkPause();
    ForkPause(const ForkPause&) = delete;
    ForkPause& operator=(const ForkPause&) = delete;

private:
    int depth_;
};

// How many forks lie between the process that loaded the library and this one.
std::uint32_t fork_generation();

// A mutex that a child finds free, whoever held it when the fork was made.
class ForkMutex {
public:
    ForkMutex() = default;
    ~ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;
    void lock();
    void unlock();

private:
    struct Held {
        std::mutex mutex;
        std::uint32_t generation;
    };
    std::atomic<Held*> held_{nullptr};
    Held* owned_ = nullptr;  // by the thread that holds it
};

}  // namespace flexor::support
