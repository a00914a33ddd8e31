#include "lower/arena_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace flexor::lower {

namespace {

using Order = std::vector<std::size_t>;
using Graph = std::vector<std::vector<std::size_t>>;

constexpr double kSame = 1e-9;              // ratios closer than this are equal
constexpr std::size_t kMostBuffers = 2048;  // of a search for a transitive order, which holds a matrix
constexpr double kMostForcing = 2e7;        // pairs of edges it may look at
constexpr double kMostComparisons = 3e6;    // pairs of buffers that the comparison of orders may look at

// Directs the edges of the graph so that a below b and b below c make a below c, if that is possible for all: an edge
// forces those that share an end with it and whose other ends do not meet; what is forced together is set apart before
// the next edge is directed (Golumbic). Where it is impossible, the directions are a start as good as others.
class TransitiveOrder {
public:
    explicit TransitiveOrder(const Graph& graph)
        : graph_(graph), count_(graph.size()), states_(count_ * count_, kNone), below_(count_ * count_) {}

    Order find() {
        for (std::size_t a = 0; a < count_; ++a) {
            for (std::size_t b : graph_[a]) state(a, b) = kFree;
        }
        for (std::size_t a = 0; a < count_; ++a) {
            for (std::size_t b : graph_[a]) {
                if (state(a, b) == kFree) direct_class(a, b);
            }
        }
        return sorted();
    }

private:
    enum State : std::uint8_t { kNone, kFree, kDirected, kSetApart };

    std::uint8_t& state(std::size_t a, std::size_t b) { return states_[a * count_ + b]; }
    bool present(std::size_t a, std::size_t b) {
        const std::uint8_t s = state(a, b);
        return s == kFree || s == kDirected;
    }

    void force(std::size_t a, std::size_t b) {
        if (state(a, b) != kFree) return;
        state(a, b) = state(b, a) = kDirected;
        below_[a * count_ + b] = true;
        class_.emplace_back(a, b);
    }

    void direct_class(std::size_t a, std::size_t b) {
        class_.clear();
        force(a, b);
        for (std::size_t next = 0; next < class_.size(); ++next) {
            const auto [low, high] = class_[next];
            for (std::size_t other : graph_[low]) {
                if (present(low, other) && !present(high, other) && other != high) force(low, other);
            }
            for (std::size_t other : graph_[high]) {
                if (present(high, other) && !present(low, other) && other != low) force(other, high);
            }
        }
        for (const auto& [low, high] : class_) state(low, high) = state(high, low) = kSetApart;
    }

    // Lowest first; a cycle, which a graph without such an order may leave, is cut at the buffer with the fewest below.
    Order sorted() const {
        std::vector<std::size_t> waiting(count_, 0);
        for (std::size_t a = 0; a < count_; ++a) {
            for (std::size_t b : graph_[a]) waiting[b] += below_[a * count_ + b] ? 1 : 0;
        }
        Order order;
        std::vector<bool> laid(count_);
        while (order.size() < count_) {
            std::size_t least = count_;
            for (std::size_t i = 0; i < count_; ++i) {
                if (!laid[i] && (least == count_ || waiting[i] < waiting[least])) least = i;
            }
            laid[least] = true;
            order.push_back(least);
            for (std::size_t b : graph_[least]) waiting[b] -= below_[least * count_ + b] ? 1 : 0;
        }
        return order;
    }

    const Graph& graph_;
    std::size_t count_;
    std::vector<std::uint8_t> states_;
    std::vector<bool> below_;
    std::vector<std::pair<std::size_t, std::size_t>> class_;
};

// How much larger than what lives at once the arena is: over the samples, at most and in sum.
struct Cost {
    double most = 0, sum = 0;

    bool better_than(const Cost& other) const {
        if (most < other.most - kSame) return true;
        return most <= other.most + kSame && sum < other.sum - kSame;
    }
};

class Comparison {
public:
    Comparison(const std::vector<Life>& lives, const Graph& graph, const std::vector<std::vector<double>>& samples)
        : graph_(graph), samples_(samples), ranks_(lives.size()), ends_(lives.size()), left_(kMostComparisons) {
        for (const std::vector<double>& sizes : samples) {
            double bound = 0;
            for (const Life& at : lives) {
                double alive = 0;
                for (std::size_t i = 0; i < lives.size(); ++i) {
                    if (lives[i].first <= at.first && at.first <= lives[i].last) alive += sizes[i];
                }
                bound = std::max(bound, alive);
            }
            bounds_.push_back(bound);
        }
        effort_ = static_cast<double>(lives.size());
        for (const auto& others : graph) effort_ += static_cast<double>(others.size());
        effort_ *= static_cast<double>(samples.size());
    }

    bool is_done() const { return best_.most <= 1 + kSame || left_ <= 0; }
    const Order& best() const { return order_; }

    // Takes the order if it is the best so far.
    bool offer(const Order& order) {
        left_ -= effort_;
        for (std::size_t i = 0; i < order.size(); ++i) ranks_[order[i]] = i;
        Cost cost;
        for (std::size_t s = 0; s < samples_.size(); ++s) {
            double total = 0;
            for (std::size_t i : order) {
                double offset = 0;
                for (std::size_t other : graph_[i]) {
                    if (ranks_[other] < ranks_[i]) offset = std::max(offset, ends_[other]);
                }
                ends_[i] = offset + samples_[s][i];
                total = std::max(total, ends_[i]);
            }
            const double ratio = bounds_[s] > 0 ? total / bounds_[s] : 1;
            cost.most = std::max(cost.most, ratio);
            cost.sum += ratio;
        }
        if (!order_.empty() && !cost.better_than(best_)) return false;
        best_ = cost;
        order_ = order;
        return true;
    }

    // Moves single buffers right below or above one that they meet, as long as that gains.
    void improve() {
        for (bool gained = true; gained;) {
            gained = false;
            for (std::size_t i = 0; i < graph_.size(); ++i) {
                for (std::size_t other : graph_[i]) {
                    for (const bool above : {false, true}) {
                        if (is_done()) return;
                        Order order = order_;
                        order.erase(std::find(order.begin(), order.end(), i));
                        order.insert(std::find(order.begin(), order.end(), other) + (above ? 1 : 0), i);
                        gained = offer(order) || gained;
                    }
                }
            }
        }
    }

private:
    const Graph& graph_;
    const std::vector<std::vector<double>>& samples_;
    std::vector<double> bounds_;
    std::vector<std::size_t> ranks_;
    std::vector<double> ends_;
    double effort_ = 0, left_;
    Cost best_;
    Order order_;
};

}  // namespace

std::vector<std::vector<std::size_t>> meetings(const std::vector<Life>& lives) {
    Graph graph(lives.size());
    for (std::size_t i = 0; i < lives.size(); ++i) {
        for (std::size_t j = 0; j < lives.size(); ++j) {
            if (i != j && meet(lives[i], lives[j])) graph[i].push_back(j);
        }
    }
    return graph;
}

std::vector<std::size_t> arena_order(const std::vector<Life>& lives, const std::vector<std::vector<double>>& samples) {
    const Graph graph = meetings(lives);
    Comparison comparison(lives, graph, samples);
    double forcing = 0;
    for (const auto& others : graph) forcing += static_cast<double>(others.size()) * static_cast<double>(others.size());
    if (lives.size() <= kMostBuffers && forcing <= kMostForcing) comparison.offer(TransitiveOrder(graph).find());
    Order by_size(lives.size());
    std::iota(by_size.begin(), by_size.end(), std::size_t{0});
    if (comparison.best().empty()) comparison.offer(by_size);
    for (const std::vector<double>& sizes : samples) {
        if (comparison.is_done()) break;
        std::stable_sort(by_size.begin(), by_size.end(),
                         [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
        comparison.offer(by_size);
    }
    comparison.improve();
    return comparison.best();
}

}  // namespace flexor::lower
