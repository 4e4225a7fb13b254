// Random updates of one table, hot in one place and cold in another, with a record of the truth: the
// memory accesses to each piece of 2 MiB, in slots of a quarter of a second. Hits in a small cache are
// not memory accesses: a modelled, direct-mapped cache represents the processor's.
//
// zipf:      4 KiB blocks drawn by a Zipf law, the hottest in front.
// scattered: likewise, the blocks scattered over the table by a hash.
// phases:    nine of ten updates go to a sixteenth of the table, which changes its place from time to time.
// scan:      half of the updates go to a tenth of the table, the others walk all of it, line by line.
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/zipf.hpp"

namespace {

constexpr uint64_t kPiece = 2 << 20;
constexpr uint64_t kLine = 64;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kSlot = 250'000'000;
// Updates between two reads of the clock.
constexpr uint64_t kBatch = 4096;

struct Settings {
  uint64_t size = 1 << 30;
  std::string mode = "zipf";
  uint64_t seconds = 30;
  uint64_t updates = 0;
  uint64_t phase = 20;
  uint64_t seed = 1;
  uint64_t cache = 1 << 20;
  std::string truth;
};

uint64_t now() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(since_boot).count());
}

/// Draws the offset of the next update.
class Pattern {
 public:
  explicit Pattern(const Settings& settings)
      : mode_(settings.mode), bytes_(settings.size), phase_(settings.phase * 1'000'000'000),
        random_(settings.seed), zipf_(settings.size / kBlock, 0.99) {}

  /// Applies the changes over time.
  void at(uint64_t nanoseconds) {
    // 7 and 16 have no common divisor, so sixteen phases are in sixteen places.
    window_ = nanoseconds / phase_ * 7 % 16;
  }

  uint64_t next() {
    if (mode_ == "zipf") return zipf_.rank(random_.unit()) * kBlock + random_.below(kBlock);
    if (mode_ == "scattered") {
      const uint64_t block = harness::mix(zipf_.rank(random_.unit())) % (bytes_ / kBlock);
      return block * kBlock + random_.below(kBlock);
    }
    if (mode_ == "phases") {
      if (random_.below(10) == 0) return random_.below(bytes_);
      return window_ * (bytes_ / 16) + random_.below(bytes_ / 16);
    }
    if (random_.below(2) == 0) return bytes_ / 2 + random_.below(bytes_ / 10);
    scanned_ = (scanned_ + kLine) % bytes_;
    return scanned_;
  }

 private:
  std::string mode_;
  uint64_t bytes_, phase_;
  harness::Random random_;
  harness::Zipf zipf_;
  uint64_t window_ = 0, scanned_ = 0;
};

/// The counts of the present slot, and the file to which they are written: a line a slot, its end on the
/// monotonic clock and then the counts.
class Truth {
 public:
  Truth(const Settings& settings, const void* table)
      : counts_(settings.size / kPiece), cached_(settings.cache / kLine) {
    if (settings.truth.empty()) return;
    file_ = std::fopen(settings.truth.c_str(), "w");
    if (file_ == nullptr) std::perror(settings.truth.c_str()), std::exit(1);
    std::fprintf(file_, "table %p\n", table);
    std::fflush(file_);
  }

  void count(uint64_t offset) {
    if (!cached_.empty()) {
      // Lines are numbered from 1, so that 0 marks an empty place.
      const uint64_t line = offset / kLine + 1;
      uint64_t& place = cached_[line % cached_.size()];
      if (place == line) return;
      place = line;
    }
    ++counts_[offset / kPiece];
  }

  void end_slot(uint64_t nanoseconds) {
    if (file_ == nullptr) return;
    std::fprintf(file_, "%llu", static_cast<unsigned long long>(nanoseconds));
    for (uint64_t& count : counts_) {
      std::fprintf(file_, " %llu", static_cast<unsigned long long>(count));
      count = 0;
    }
    std::fprintf(file_, "\n");
    std::fflush(file_);
  }

 private:
  std::vector<uint64_t> counts_, cached_;
  std::FILE* file_ = nullptr;
};

[[gnu::noinline]] char* make_table(const Settings& settings, const harness::Options& options) {
  void* table = std::aligned_alloc(kPiece, settings.size);
  if (table == nullptr) {
    options.refuse("--size " + harness::format_bytes(settings.size) + " is more memory than there is");
  }
  std::memset(table, 1, settings.size);
  return static_cast<char*>(table);
}

void run(const Settings& settings, char* table) {
  Pattern pattern(settings);
  Truth truth(settings, table);
  const uint64_t begin = now(), end = begin + settings.seconds * 1'000'000'000;
  uint64_t done = 0, slot = begin + kSlot;
  for (uint64_t time = begin; settings.updates ? done < settings.updates : time < end; time = now()) {
    pattern.at(time - begin);
    for (uint64_t i = 0; i < kBatch; ++i) {
      const uint64_t offset = pattern.next();
      table[offset] = static_cast<char>(table[offset] + 1);
      truth.count(offset);
    }
    done += kBatch;
    if (time >= slot) {
      truth.end_slot(time);
      slot = time + kSlot;
    }
  }
  const double seconds = static_cast<double>(now() - begin) * 1e-9;
  harness::print_measure("kernel_seconds", seconds);
  harness::print_measure("updates_per_second", static_cast<double>(done) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("patterns", "updates of a table, hot in places, and how often each place was updated");
  options.bytes("--size", &settings.size, 32 << 20, uint64_t{1} << 40, "bytes of the table, a multiple of 32MiB");
  options.word("--mode", &settings.mode, "zipf|scattered|phases|scan", "which places are hot");
  options.count("--seconds", &settings.seconds, 1, 1'000'000, "how long, unless --updates says");
  options.count("--updates", &settings.updates, 0, uint64_t{1} << 40, "how many updates; 0: as --seconds says");
  options.count("--phase", &settings.phase, 1, 1'000'000, "phases: seconds of one");
  options.count("--seed", &settings.seed, 0, 1u << 30, "seed of the random numbers");
  options.bytes("--cache", &settings.cache, 0, 1 << 30, "modelled cache before the counts; 0 for none");
  options.file("--truth", &settings.truth, "where the counts are written");
  options.parse(argc, argv);
  if (settings.size % (32 << 20) != 0) options.refuse("--size wants a multiple of 32MiB");
  char* table = make_table(settings, options);
  run(settings, table);
  std::free(table);
}
