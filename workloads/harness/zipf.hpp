// Zipf's law, for programs whose data is the hotter the fewer of it there is.
#pragma once

#include <cmath>
#include <cstdint>

namespace harness {

/// Draws ranks 0 .. count-1 with P(rank < k) = ((k+1)^(1-s) - 1) / ((count+1)^(1-s) - 1): the
/// continuous relative of Zipf's law, which needs no table of its own.
class Zipf {
 public:
  Zipf(uint64_t count, double skew)
      : count_(count), one_minus_skew_(1 - skew),
        range_(std::pow(static_cast<double>(count) + 1, one_minus_skew_) - 1) {}

  uint64_t rank(double unit) const {
    const double value = std::pow(unit * range_ + 1, 1 / one_minus_skew_) - 1;
    const auto rank = static_cast<uint64_t>(value);
    return rank < count_ ? rank : count_ - 1;
  }

 private:
  uint64_t count_;
  double one_minus_skew_;
  double range_;
};

}  // namespace harness
