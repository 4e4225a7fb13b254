// Random numbers that depend on a seed and a position only, so that every run and every number of
// threads draws the same ones. The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#pragma once

#include <cstdint>

namespace harness {

/// The avalanche step of SplitMix64: a bijection of 64-bit words.
inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A sequence of random words.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}

  /// The next 64 random bits.
  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }

  /// A number below `bound` (multiply-shift; the bias is below 2^-32 for the bounds used here).
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  /// A number in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace harness
