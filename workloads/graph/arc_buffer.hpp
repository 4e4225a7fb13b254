// The arcs of an input whose number is not known before its end.
#pragma once

#include <cstring>

#include "array.hpp"
#include "edge_list.hpp"

/// The arcs read so far, in a buffer that doubles. No count that a file states is trusted: memory
/// grows with what the file holds.
class Growing {
 public:
  void add(Edge edge) {
    if (count_ == capacity_) grow();
    edges_[count_++] = edge;
  }
  uint64_t count() const { return count_; }

  /// A buffer of exactly the arcs read.
  [[gnu::noinline]] Array<Edge> take() {
    Array<Edge> exact(NEW_ARRAY(Edge, "input_arcs", count_));
    if (count_ != 0) std::memcpy(exact.get(), edges_.get(), count_ * sizeof(Edge));
    edges_.reset();
    return exact;
  }

 private:
  [[gnu::noinline]] void grow() {
    capacity_ = capacity_ == 0 ? 1 << 16 : capacity_ * 2;
    Array<Edge> larger(NEW_ARRAY(Edge, "input_arcs", capacity_));
    if (count_ != 0) std::memcpy(larger.get(), edges_.get(), count_ * sizeof(Edge));
    edges_ = std::move(larger);
  }

  Array<Edge> edges_;
  uint64_t count_ = 0;
  uint64_t capacity_ = 0;
};
