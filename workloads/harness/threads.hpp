// The start of a program that works with a number of threads on a number of bytes, both options of its command line.
#pragma once

#include <omp.h>

#include <new>
#include <string>

#include "options.hpp"

namespace harness {

/// Runs the program by OpenMP's threads. Where it needs more memory than there is, it ends with this sentence.
template <typename Program>
auto with_threads(const Options& options, uint64_t threads, const std::string& too_large, Program program) {
  omp_set_num_threads(static_cast<int>(threads));
  try {
    return program();
  } catch (const std::bad_alloc&) {
    options.refuse(too_large);
  }
}

}  // namespace harness
