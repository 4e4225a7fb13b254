// The processor's own time counter, which runs at one rate whatever the processor's frequency and whatever shares its core, and which
// reads no memory, unlike a clock of the C library.
#pragma once

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace harness {

/// Ticks since some time in the past.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

/// The ticks of so many nanoseconds, measured against the monotonic clock for 20 ms.
inline uint64_t ticks_of(uint64_t nanoseconds) {
  using std::chrono::steady_clock;
  const auto begun = steady_clock::now();
  const uint64_t first = ticks();
  std::chrono::duration<double, std::nano> taken{};
  while (taken < std::chrono::milliseconds(20)) taken = steady_clock::now() - begun;
  return static_cast<uint64_t>(static_cast<double>(nanoseconds) * static_cast<double>(ticks() - first) / taken.count());
}

}  // namespace harness
