// How threads fill one frontier together.
#pragma once

#include <algorithm>
#include <cstdint>

/// Appends a thread's vertices to the shared frontier.
class Batch {
 public:
  Batch(uint32_t* frontier, uint64_t* cursor) : frontier_(frontier), cursor_(cursor) {}
  ~Batch() { flush(); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(uint32_t vertex) {
    vertices_[count_++] = vertex;
    if (count_ == kBatch) flush();
  }

 private:
  /// Vertices that a thread collects before it takes the shared cursor.
  static constexpr uint64_t kBatch = 1024;

  void flush() {
    const uint64_t begin = __atomic_fetch_add(cursor_, count_, __ATOMIC_RELAXED);
    std::copy_n(vertices_, count_, frontier_ + begin);
    count_ = 0;
  }

  uint32_t* frontier_;
  uint64_t* cursor_;
  uint64_t count_ = 0;
  uint32_t vertices_[kBatch];
};
