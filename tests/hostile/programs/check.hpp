// Checks for the hostile programs. A failed check prints its place and ends the program with status 1.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

/// Status by which a program reports that this machine cannot run it.
constexpr int kSkip = 77;

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      const int check_errno = errno;                                                      \
      dprintf(2, "%s:%d: failed: %s (errno %d)\n", __FILE__, __LINE__, #condition, check_errno); \
      _exit(1);                                                                           \
    }                                                                                     \
  } while (0)

/// The byte that belongs at a place of a buffer filled with `seed`.
inline unsigned char pattern_byte(size_t index, unsigned seed) {
  return static_cast<unsigned char>((index * 131 + seed * 17 + (index >> 12)) & 0xff);
}

/// Fills a buffer so that any lost, torn or swapped page is detected.
inline void fill_pattern(void* buffer, size_t bytes, unsigned seed) {
  auto* out = static_cast<unsigned char*>(buffer);
  for (size_t i = 0; i < bytes; ++i) out[i] = pattern_byte(i, seed);
}

/// Whether a buffer still holds what `fill_pattern` wrote.
inline bool has_pattern(const void* buffer, size_t bytes, unsigned seed) {
  const auto* in = static_cast<const unsigned char*>(buffer);
  for (size_t i = 0; i < bytes; ++i) {
    if (in[i] != pattern_byte(i, seed)) return false;
  }
  return true;
}

/// Keeps the optimiser from removing an allocation.
template <typename T>
inline T* keep(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

/// Writes to an address near zero, which no page backs: the program gets SIGSEGV there.
inline void write_near_zero(uintptr_t address) {
  volatile uintptr_t hidden = address;
  *reinterpret_cast<volatile char*>(hidden) = 1;
}
