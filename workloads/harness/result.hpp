// The output of a workload: its result on standard output, the same in every run, and its times on
// standard error, so that outputs can be compared byte by byte.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "random.hpp"

namespace harness {

/// Adds up the time spent between `start` and `stop`.
class Stopwatch {
 public:
  void start() { begun_ = std::chrono::steady_clock::now(); }
  void stop() { total_ += std::chrono::steady_clock::now() - begun_; }
  double seconds() const { return std::chrono::duration<double>(total_).count(); }

 private:
  std::chrono::steady_clock::time_point begun_{};
  std::chrono::steady_clock::duration total_{};
};

/// Prints a named number on standard error, one a line: `name value`. The benchmark reads these.
inline void print_measure(const char* name, double value) {
  std::fprintf(stderr, "%s %.6f\n", name, value);
}

/// When the program began, as far as its own code can tell.
inline const std::chrono::steady_clock::time_point program_begin = std::chrono::steady_clock::now();

inline double seconds_since_begin() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - program_begin).count();
}

/// Prints the time of the monotonic clock at the end of a repetition, so that a program's speed can be
/// followed while others start and end: `lap 81023.250000`.
inline void print_lap() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  print_measure("lap", std::chrono::duration<double>(now).count());
}

/// A checksum of the bits of values, dependent on their order.
class Checksum {
 public:
  void add(uint64_t value) { state_ = mix(state_ ^ value) + 0x9e3779b97f4a7c15u; }
  void add(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    add(bits);
  }
  unsigned long long value() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace harness
