#pragma once
// The guard ladder of one safe point: (function, pc) -> signature -> exact record -> symbolic guards -> compile.
//
// Laws
//  G1  A hit takes no lock: exact records belong to the thread, the list of entries is an immutable snapshot that a
//      thread fetches again when its version has changed.
//  G2  One compilation per signature at a time; threads that miss the same one wait for it.
//  G3  An exact record is dropped with its entry.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "support/fork_gate.h"
#include "vm/compile_interface.h"
#include "vm/entry.h"
#include "vm/live.h"

namespace flexor::vm {

// The entries of one signature, in order of registration.
struct SignatureGroup {
    std::uint64_t hash = 0;
    std::vector<std::uint64_t> words;
    std::vector<EntryRef> entries;
};

// Immutable once published.
struct Snapshot {
    std::vector<SignatureGroup> groups;  // few; looked up by hash
    const SignatureGroup* find(const LiveKey& key) const;
};

// Shared by all threads.
struct EntryPoint {
    std::int32_t function = 0;
    std::int32_t pc = 0;
    std::atomic<std::uint64_t> version{1};
    std::mutex mutex;
    std::condition_variable done;
    std::shared_ptr<const Snapshot> snapshot = std::make_shared<Snapshot>();
    std::vector<std::vector<std::uint64_t>> in_flight;  // signatures that are being compiled
    // Of in_flight: what other threads had begun before a fork is lost.
    std::uint32_t generation = support::fork_generation();
    // Signatures with the sizes of calls whose regions were refused beside the calls, for these sizes alone; few.
    std::vector<std::vector<std::uint64_t>> refused;

    std::shared_ptr<const Snapshot> read() {
        std::lock_guard lock(mutex);
        return snapshot;
    }
    // Adds an entry; beyond `capacity` entries of its signature the least recently used goes and is returned. `count`:
    // entries of the signature afterwards.
    EntryRef add(EntryRef entry, std::size_t capacity, std::size_t* count = nullptr);
};

// Exact keys of one thread: set-associative, least recently used goes.
class ExactTable {
public:
    // The record that was found or inserted last, if it is the one of `key`, whose hashes nobody looks at. Null: look it
    // up with `find`.
    const EntryRef* repeated(const LiveKey& key) const;
    // Null: not there. A record of a dropped entry is removed. Valid until the table changes.
    const EntryRef* find(const LiveKey& key);
    void insert(const LiveKey& key, EntryRef entry, std::size_t capacity);
    // Takes the memory of `capacity` records like those that are there, so that inserting takes none.
    void reserve(std::size_t capacity);

private:
    static constexpr std::size_t kWays = 4;
    struct Record {
        std::uint64_t hash = 0;
        std::uint64_t stamp = 0;
        EntryRef entry;
        std::unique_ptr<std::int64_t[]> words;  // signature, frame, float slots
        std::uint32_t signature_size = 0, frame_size = 0, float_count = 0;
        std::uint32_t room = 0;  // of `words`
        void make_room(std::size_t wanted);
    };
    static bool matches(const Record& record, const LiveKey& key);
    void grow();
    std::vector<Record> records_;   // kWays per set, a power of two of sets
    const Record* last_ = nullptr;  // among them, with the newest stamp
    std::size_t used_ = 0;
    std::uint64_t clock_ = 0;
};

// One safe point as one thread sees it.
struct ThreadEntryPoint {
    EntryPoint* shared = nullptr;
    std::uint64_t version = 0;
    std::shared_ptr<const Snapshot> snapshot;
    ExactTable exact;
    std::vector<EntryRef> owned;

    // The entry as this thread holds it: handles that are copied on the call path count on a line of this thread's.
    EntryRef own(const EntryRef& entry);

    const Snapshot& current() {
        if (version != shared->version.load(std::memory_order_acquire)) refresh();
        return *snapshot;
    }
    void refresh();
};

// The entry of the group whose guards hold for the frame; `scratch` is overwritten. Null: none; else valid as long as
// the group is. `failed` counts the entries with code that do not apply.
const EntryRef* match_symbolic(const SignatureGroup& group, const LiveKey& key, Words<std::int64_t>& scratch,
                               std::uint32_t* failed);

}  // namespace flexor::vm
