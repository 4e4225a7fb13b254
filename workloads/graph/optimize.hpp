// ATMem's scheme (CGO 2020, section 7) through Isotherm's interface: the first repetition is
// profiled, and the data is moved before the second one starts.
#pragma once

#include <isotherm.h>

#include "../harness/result.hpp"

/// Profiles the work between `start` and `move`. Without Isotherm's runtime, and in a run that
/// serves no requests, nothing is moved.
class Optimization {
 public:
  void start();
  /// Ends the profile and moves the data. Prints the first call that did not succeed, and why.
  void move();
  /// Prints times and bytes.
  void print() const;

 private:
  /// Keeps the first status other than ISOTHERM_OK.
  void note(const char* function, int status);

  const char* failed_ = nullptr;
  int status_ = ISOTHERM_OK;
  harness::Stopwatch start_time_;
  harness::Stopwatch stop_time_;
  harness::Stopwatch optimize_time_;
  isotherm_result result_{};
};
