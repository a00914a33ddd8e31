#pragma once

// One pool of worker threads for the whole process, behind parallel_for.
//
// Laws
//  P1  The caller takes part and can finish every chunk alone: a busy machine delays a call by the chunks that other
//      threads have begun, never by threads that have not woken.
//  P2  Chunks are the same whatever the thread count: chunk i covers [i*grain, min(count, (i+1)*grain)). What a body
//      computes per chunk is therefore reproducible.
//  P3  A call from inside a body runs serially, on slot 0 of its own.
//  P4  Several callers at once are safe; the workers share themselves out.
//  P5  A forked child starts with a fresh pool.
//  P6  Bodies do not throw.
//  P7  Chunks are left out once the run that the caller works for is to stop (stop_check.h).

#include <cstdint>
#include <type_traits>

namespace flexor::runtime {

// The body of a loop over chunks: every index in [begin, end).
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);

// The same, and told its slot in [0, max_slots): no two bodies of one call run on the same slot at a time, so scratch
// memory can be kept one piece a slot.
using SlotBody = void (*)(void* context, int slot, std::int64_t begin, std::int64_t end);

// count <= 0 does nothing; grain < 1 counts as 1.
void parallel_for(RangeBody body, void* context, std::int64_t count, std::int64_t grain);
void parallel_for_slots(SlotBody body, void* context, std::int64_t count, std::int64_t grain, int max_slots);

// body(begin, end)
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    parallel_for(
        [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<Plain*>(context))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)), count, grain);
}

// body(slot, begin, end)
template <typename Body>
void parallel_for_slots(std::int64_t count, std::int64_t grain, int max_slots, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    parallel_for_slots([](void* context, int slot, std::int64_t begin,
                          std::int64_t end) { (*static_cast<Plain*>(context))(slot, begin, end); },
                       const_cast<void*>(static_cast<const void*>(&body)), count, grain, max_slots);
}

// How many threads a call may use, the caller among them. The default is FLEXOR_NUM_THREADS, else the least of the
// processors this process may run on, the control group's quota (rounded up) and OMP_NUM_THREADS.
int thread_count();
void set_thread_count(int count);  // clamped to [1, 1024]; calls in flight keep the old count
int default_thread_count();
// Starts the workers that calls may use, as far as the system lets, and returns when they wait for work: later calls take
// no memory for them.
void start_workers();

}  // namespace flexor::runtime
