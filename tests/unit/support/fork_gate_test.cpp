#include "support/fork_gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace flexor::support {
namespace {

// What the child's body returns; -1 if the child ends in another way.
template <class Body>
int in_child(const Body& body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkGate, AForkFindsWhatOthersAreAtWhole) {
    std::atomic<int> begun{0}, ended{0};
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) {
            const ForkSection section;
            const ForkSection inner;
            ++begun;
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ++ended;
        }
    });
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        EXPECT_EQ(in_child([&] { return begun == ended ? 7 : 8; }), 7);
    }
    stop = true;
    other.join();
}

TEST(ForkGate, AThreadThatForksInsideASectionDoesNotWait) {
    const ForkSection section;
    const std::uint32_t before = fork_generation();
    EXPECT_EQ(in_child([&] {
                  const ForkSection again;
                  return static_cast<int>(fork_generation() - before);
              }),
              1);
    EXPECT_EQ(fork_generation(), before);
}

TEST(ForkGate, AChildFindsTheMutexFreeThatAnotherThreadHoldsOutside) {
    ForkMutex mutex;
    std::atomic<bool> held{false}, stop{false};
    std::thread other([&] {
        const ForkSection section;
        const std::lock_guard lock(mutex);
        const ForkPause pause;
        held = true;
        while (!stop) std::this_thread::yield();
    });
    while (!held) std::this_thread::yield();
    EXPECT_EQ(in_child([&] {
                  const ForkSection section;
                  const std::lock_guard lock(mutex);
                  return in_child([&] {
                      const std::lock_guard again(mutex);
                      return 5;
                  });
              }),
              5);
    stop = true;
    other.join();
    const std::lock_guard lock(mutex);
}

}  // namespace
}  // namespace flexor::support
