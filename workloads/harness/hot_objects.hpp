// Hot objects that threads write in random order with a delay between two of them, beside cold ones: the kernel of MemBench and of
// NUMABench (Cross-Layer, Olson et al., TACO 2018, section 6).
//
//   part 0   | hot objects, a cache line each |      part 1   | hot objects of the remote node |      cold   | touched once |
//              \------------- one order over all parts, shared among the threads ------------/
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>

#include "options.hpp"
#include "processor_clock.hpp"
#include "random.hpp"
#include "result.hpp"
#include "threads.hpp"

namespace harness {

/// An object on a cache line of its own, so that each write reaches memory, with the place of the next one: the next write waits for
/// this line, whatever the delay.
struct alignas(64) HotObject {
  uint64_t value;
  uint64_t next;
};

/// Bytes that memory transfers for each written object: the line is read, and written back.
constexpr uint64_t kBytesPerWrite = 2 * sizeof(HotObject);

/// Refuses sizes for which there is no memory.
constexpr const char* kTooLarge = "--hot and --cold are more memory than there is";

/// What both programs are told.
struct HotSettings {
  uint64_t hot = uint64_t{200} << 20;
  uint64_t cold = uint64_t{2} << 30;
  uint64_t delay = 0;
  uint64_t passes = 10;
  uint64_t warm_up = 1;
  uint64_t threads = 2;
  uint64_t devices = 0;
  bool check = false;
  bool objects = false;
};

inline void add_options(Options& options, HotSettings& settings) {
  options.bytes("--hot", &settings.hot, 4 << 10, uint64_t{1} << 40, "bytes of the hot objects");
  options.bytes("--cold", &settings.cold, 0, uint64_t{1} << 40, "bytes of the cold objects");
  options.count("--delay", &settings.delay, 0, 1000000, "nanoseconds that a thread spins between two objects");
  options.count("--passes", &settings.passes, 1, 1000000000, "times that each hot object is written");
  options.count("--warm-up", &settings.warm_up, 1, 1000000, "times that each hot object is written before that, without a delay and untimed");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--devices", &settings.devices, 0, 65536,
                "memory devices that hold the hot objects of this run: prints it as a line for isotherm fit-bandwidth; 0 for none");
  options.flag("--check", &settings.check, "compare every hot object with what it must be");
  options.flag("--objects", &settings.objects, "print the name and the bytes of each object");
}

/// The hot objects in two parts, and the order in which they are written: a stride that has no divisor in common with their number,
/// so that each is reached once and neighbours in time are far apart in memory.
class HotObjects {
 public:
  HotObjects(HotObject* first, uint64_t in_first, HotObject* second, uint64_t in_second)
      : first_(first), second_(second), in_first_(in_first), count_(in_first + in_second) {
    stride_ = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(count_) * 0.6180339887498949));
    while (std::gcd(stride_, count_) != 1) ++stride_;
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < count_; ++i) at(i) = {mix(i), i + stride_ < count_ ? i + stride_ : i + stride_ - count_};
  }

  uint64_t count() const { return count_; }

  /// Each thread writes its part of the order `passes` times, with a delay of so many ticks after each object.
  void write(uint64_t passes, uint64_t delay) {
#pragma omp parallel
    {
      const uint64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
      const uint64_t begin = count_ / threads * thread;
      const uint64_t end = thread + 1 == threads ? count_ : begin + count_ / threads;
      for (uint64_t pass = 0; pass < passes; ++pass) {
        uint64_t place = static_cast<uint64_t>(static_cast<unsigned __int128>(begin) * stride_ % count_);
        for (uint64_t i = begin; i < end; ++i) {
          HotObject& object = at(place);
          object.value += 1;
          place = object.next;
          spin(delay);
        }
      }
    }
  }

  /// A sum of the values, in any order.
  uint64_t sum() const {
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (uint64_t i = 0; i < count_; ++i) sum += at(i).value;
    return sum;
  }

  /// Whether each was written `passes` times.
  bool agrees(uint64_t passes) const {
    for (uint64_t i = 0; i < count_; ++i) {
      if (at(i).value != mix(i) + passes) return false;
    }
    return true;
  }

  /// Spins for so many ticks: as long in each run, whatever shares the processor's core. None reads no counter.
  static void spin(uint64_t delay) {
    if (delay == 0) return;
    const uint64_t begun = ticks();
    while (ticks() - begun < delay) {
    }
  }

 private:
  HotObject& at(uint64_t i) const { return i < in_first_ ? first_[i] : second_[i - in_first_]; }

  HotObject* first_;
  HotObject* second_;
  uint64_t in_first_;
  uint64_t count_;
  uint64_t stride_;
};

/// Cold objects are made and touched first, a line of each page.
inline void touch_cold(HotObject* cold, uint64_t count) {
  constexpr uint64_t kLinesPerPage = 4096 / sizeof(HotObject);
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; i += kLinesPerPage) cold[i].value = i;
}

/// Writes the hot objects without delay and timing, so that what making them left behind does not count, and then `passes` times; prints
/// the result and its times, and returns the exit status.
inline int run_hot(const char* program, const HotSettings& settings, HotObjects& hot) {
  const uint64_t delay = ticks_of(settings.delay);
  const double begin = seconds_since_begin();
  Stopwatch kernel;
  hot.write(settings.warm_up, 0);
  kernel.start();
  hot.write(settings.passes, delay);
  kernel.stop();
  const double written = static_cast<double>(hot.count()) * static_cast<double>(settings.passes);
  std::printf("%s: objects %llu checksum %016llx\n", program, static_cast<unsigned long long>(hot.count()),
              static_cast<unsigned long long>(hot.sum()));
  const double work = written / kernel.seconds(), bandwidth = work * kBytesPerWrite;
  print_measure("writing_begins_seconds", begin);
  print_measure("kernel_seconds", kernel.seconds());
  print_measure("objects_per_second", work);
  print_measure("bytes_per_second", bandwidth);
  if (settings.devices > 0) {
    std::fprintf(stderr, "devices %llu delay %llu bandwidth %.0f work %.0f\n", static_cast<unsigned long long>(settings.devices),
                 static_cast<unsigned long long>(settings.delay), bandwidth, work);
  }
  if (!settings.check) return 0;
  const bool agrees = hot.agrees(settings.passes + settings.warm_up);
  std::printf("%s: %s\n", program, agrees ? "each object was written once in each pass" : "an object has another value than it must have");
  return agrees ? 0 : 1;
}

}  // namespace harness
