#include "vm/ladder.h"

#include <algorithm>
#include <cstring>

namespace flexor::vm {

namespace {

bool same_words(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) { return std::ranges::equal(a, b); }

}  // namespace

const SignatureGroup* Snapshot::find(const LiveKey& key) const {
    for (const SignatureGroup& group : groups) {
        if (group.hash == key.signature_hash && same_words(group.words, key.signature.span())) return &group;
    }
    return nullptr;
}

EntryRef EntryPoint::add(EntryRef entry, std::size_t capacity, std::size_t* count) {
    std::lock_guard lock(mutex);
    auto next = std::make_shared<Snapshot>(*snapshot);
    SignatureGroup* group = nullptr;
    for (SignatureGroup& candidate : next->groups) {
        if (candidate.hash == entry->signature_hash && same_words(candidate.words, entry->signature_words))
            group = &candidate;
    }
    if (group == nullptr) {
        group = &next->groups.emplace_back();
        group->hash = entry->signature_hash;
        group->words = entry->signature_words;
    }
    EntryRef evicted;
    if (capacity > 0 && group->entries.size() >= capacity) {
        const auto oldest =
            std::min_element(group->entries.begin(), group->entries.end(), [](const EntryRef& a, const EntryRef& b) {
                return a->last_used.load(std::memory_order_relaxed) < b->last_used.load(std::memory_order_relaxed);
            });
        evicted = *oldest;
        evicted->dropped.store(true, std::memory_order_release);
        group->entries.erase(oldest);
    }
    group->entries.push_back(std::move(entry));
    if (count != nullptr) *count = group->entries.size();
    snapshot = std::move(next);
    version.fetch_add(1, std::memory_order_release);
    return evicted;
}

EntryRef ThreadEntryPoint::own(const EntryRef& entry) {
    for (const EntryRef& mine : owned) {
        if (mine == entry) return mine;
    }
    return owned.emplace_back(entry.get(), [entry](Entry*) {});
}

void ThreadEntryPoint::refresh() {
    // The version is read first: a snapshot that is newer than it is fetched once more at the next look-up.
    version = shared->version.load(std::memory_order_acquire);
    snapshot = shared->read();
    std::erase_if(owned, [](const EntryRef& mine) { return mine->dropped.load(std::memory_order_relaxed); });
}

bool ExactTable::matches(const Record& record, const LiveKey& key) {
    if (record.signature_size != key.signature.size() || record.frame_size != key.frame.size()) return false;
    const std::int64_t* words = record.words.get();
    const std::size_t signature = record.signature_size * sizeof(std::int64_t);
    if (signature > 0 && std::memcmp(words, key.signature.data(), signature) != 0) return false;
    words += record.signature_size;
    if (record.float_count == 0) return std::equal(words, words + record.frame_size, key.frame.data());
    // Equal signatures have their floats in the same slots.
    std::size_t next = 0;
    for (std::size_t i = 0; i < record.frame_size; ++i) {
        if (next < key.floats.size() && key.floats[next] == i) {
            ++next;
            continue;
        }
        if (words[i] != key.frame[i]) return false;
    }
    return true;
}

const EntryRef* ExactTable::repeated(const LiveKey& key) const {
    if (last_ == nullptr || !matches(*last_, key)) return nullptr;
    return last_->entry->dropped.load(std::memory_order_relaxed) ? nullptr : &last_->entry;
}

const EntryRef* ExactTable::find(const LiveKey& key) {
    if (records_.empty()) return nullptr;
    const std::size_t sets = records_.size() / kWays;
    Record* set = &records_[(key.exact_hash & (sets - 1)) * kWays];
    for (std::size_t way = 0; way < kWays; ++way) {
        Record& record = set[way];
        if (record.hash != key.exact_hash || record.entry == nullptr || !matches(record, key)) continue;
        if (record.entry->dropped.load(std::memory_order_relaxed)) {
            if (last_ == &record) last_ = nullptr;
            record.entry = nullptr;
            --used_;
            return nullptr;
        }
        record.stamp = ++clock_;
        last_ = &record;
        return &record.entry;
    }
    return nullptr;
}

void ExactTable::insert(const LiveKey& key, EntryRef entry, std::size_t capacity) {
    if (capacity == 0) return;
    if (records_.empty()) records_.resize(2 * kWays);
    Record* victim = nullptr;
    for (;;) {
        const std::size_t sets = records_.size() / kWays;
        Record* set = &records_[(key.exact_hash & (sets - 1)) * kWays];
        victim = set;
        for (std::size_t way = 0; way < kWays; ++way) {
            if (set[way].entry == nullptr) {
                victim = &set[way];
                break;
            }
            if (set[way].stamp < victim->stamp) victim = &set[way];
        }
        if (victim->entry == nullptr || records_.size() * 2 > std::max(capacity, kWays)) break;
        grow();
    }
    // What can fail comes first: a record is whole or unchanged.
    victim->make_room(key.signature.size() + key.frame.size() + 1);
    std::copy_n(key.signature.data(), key.signature.size(), victim->words.get());
    std::copy_n(key.frame.data(), key.frame.size(), victim->words.get() + key.signature.size());
    if (victim->entry == nullptr) ++used_;
    last_ = victim;
    victim->hash = key.exact_hash;
    victim->stamp = ++clock_;
    victim->entry = std::move(entry);
    victim->signature_size = static_cast<std::uint32_t>(key.signature.size());
    victim->frame_size = static_cast<std::uint32_t>(key.frame.size());
    victim->float_count = static_cast<std::uint32_t>(key.floats.size());
}

void ExactTable::Record::make_room(std::size_t wanted) {
    if (wanted <= room) return;
    words.reset(new std::int64_t[wanted]);
    room = static_cast<std::uint32_t>(wanted);
}

void ExactTable::reserve(std::size_t capacity) {
    if (records_.empty()) return;
    while (records_.size() * 2 <= std::max(capacity, kWays)) grow();
    std::size_t longest = 0;
    for (const Record& record : records_) longest = std::max<std::size_t>(longest, record.room);
    for (Record& record : records_) {
        if (record.entry == nullptr) record.make_room(longest);
    }
}

void ExactTable::grow() {
    std::vector<Record> old(records_.size() * 2);
    last_ = nullptr;
    old.swap(records_);
    used_ = 0;
    const std::size_t sets = records_.size() / kWays;
    for (Record& record : old) {
        if (record.entry == nullptr) continue;
        Record* set = &records_[(record.hash & (sets - 1)) * kWays];
        for (std::size_t way = 0; way < kWays; ++way) {
            if (set[way].entry != nullptr) continue;
            set[way] = std::move(record);
            ++used_;
            break;
        }
    }
}

const EntryRef* match_symbolic(const SignatureGroup& group, const LiveKey& key, Words<std::int64_t>& scratch,
                               std::uint32_t* failed) {
    for (const EntryRef& entry : group.entries) {
        if (entry->executable == nullptr) {
            if (entry->whole_signature) return &entry;
            continue;
        }
        const executable::Executable& executable = *entry->executable;
        if (executable.guards.empty()) return &entry;
        std::int64_t* frame = scratch.ensure(executable.frame_slots + 1);
        std::copy_n(key.frame.data(), key.frame.size(), frame);
        if (executable::guards_hold(executable, frame)) return &entry;
        ++*failed;
    }
    return nullptr;
}

}  // namespace flexor::vm
