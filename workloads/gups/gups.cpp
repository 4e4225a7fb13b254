// Random updates of a table (after the RandomAccess benchmark of HPC Challenge), with skew.
//
// split: a large cold table, made and filled first, and a small hot one; most updates go to the
//        hot one. Two allocations, so a plan by allocation site can separate them.
// zipf:  one table whose 4 KiB blocks are drawn by a Zipf law and lie scattered. One allocation,
//        so a plan by site cannot separate hot from cold; chunks or pages could.
#include <memory>
#include <string>

#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"
#include "../harness/zipf.hpp"

namespace {

constexpr uint64_t kBlockWords = 512;  // 4 KiB

struct Settings {
  uint64_t size = 256 << 20;
  std::string mode = "split";
  uint64_t hot_percent = 20;
  uint64_t hot_updates_percent = 98;
  uint64_t zipf_percent = 99;
  uint64_t updates = 150000000;
  uint64_t seed = 1;
  uint64_t threads = 2;
  uint64_t repeat = 1;
  bool laps = false;
};

void fill(uint64_t* words, uint64_t count) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) words[i] = i;
}

[[gnu::noinline]] uint64_t* make_cold_table(uint64_t words) {
  uint64_t* table = new uint64_t[words];
  fill(table, words);
  return table;
}

[[gnu::noinline]] uint64_t* make_hot_table(uint64_t words) {
  uint64_t* table = new uint64_t[words];
  fill(table, words);
  return table;
}

[[gnu::noinline]] uint64_t* make_zipf_table(uint64_t words) {
  uint64_t* table = new uint64_t[words];
  fill(table, words);
  return table;
}

/// Update by an atomic exclusive or: it commutes, so the result does not depend on the threads.
void update(uint64_t* word, uint64_t value) { __atomic_fetch_xor(word, value, __ATOMIC_RELAXED); }

/// One tenth of a per cent of the work per slice: slices are seeded by number, so any number of
/// threads makes the same updates.
constexpr uint64_t kSlices = 1000;

void update_split(uint64_t* hot, uint64_t hot_words, uint64_t* cold, uint64_t cold_words,
                  const Settings& settings) {
#pragma omp parallel for schedule(dynamic)
  for (uint64_t slice = 0; slice < kSlices; ++slice) {
    harness::Random random(settings.seed * kSlices + slice);
    for (uint64_t i = 0; i < settings.updates / kSlices; ++i) {
      const uint64_t draw = random.next();
      const bool is_hot = (draw & 0xffff) * 100 < settings.hot_updates_percent * 0x10000;
      if (is_hot) {
        update(&hot[random.below(hot_words)], draw);
      } else {
        update(&cold[random.below(cold_words)], draw);
      }
    }
  }
}

void update_zipf(uint64_t* table, uint64_t words, const Settings& settings) {
  const uint64_t blocks = words / kBlockWords;
  const harness::Zipf zipf(blocks, static_cast<double>(settings.zipf_percent) / 100);
#pragma omp parallel for schedule(dynamic)
  for (uint64_t slice = 0; slice < kSlices; ++slice) {
    harness::Random random(settings.seed * kSlices + slice);
    for (uint64_t i = 0; i < settings.updates / kSlices; ++i) {
      // Ranks are scattered over the table by a hash; two ranks may share a block.
      const uint64_t block = harness::mix(zipf.rank(random.unit())) % blocks;
      const uint64_t draw = random.next();
      update(&table[block * kBlockWords + (draw >> 32) % kBlockWords], draw);
    }
  }
}

void add_table(harness::Checksum* checksum, const uint64_t* table, uint64_t words) {
  for (uint64_t i = 0; i < words; ++i) checksum->add(table[i]);
}

void run(const Settings& settings) {
  harness::Stopwatch kernel;
  harness::Checksum checksum;
  const uint64_t words = settings.size / sizeof(uint64_t);
  if (settings.mode == "split") {
    const uint64_t hot_words = words / 100 * settings.hot_percent;
    const uint64_t cold_words = words - hot_words;
    std::unique_ptr<uint64_t[]> cold(make_cold_table(cold_words));
    std::unique_ptr<uint64_t[]> hot(make_hot_table(hot_words));
    kernel.start();
    for (uint64_t i = 0; i < settings.repeat; ++i) {
      update_split(hot.get(), hot_words, cold.get(), cold_words, settings);
      if (settings.laps) harness::print_lap();
    }
    kernel.stop();
    add_table(&checksum, hot.get(), hot_words);
    add_table(&checksum, cold.get(), cold_words);
  } else {
    std::unique_ptr<uint64_t[]> table(make_zipf_table(words));
    kernel.start();
    for (uint64_t i = 0; i < settings.repeat; ++i) {
      update_zipf(table.get(), words, settings);
      if (settings.laps) harness::print_lap();
    }
    kernel.stop();
    add_table(&checksum, table.get(), words);
  }
  std::printf("gups: checksum %016llx\n", checksum.value());
  harness::print_measure("kernel_seconds", kernel.seconds());
  harness::print_measure("updates_per_second", static_cast<double>(settings.updates) *
                                                   static_cast<double>(settings.repeat) /
                                                   kernel.seconds());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("gups", "random updates of tables, hot and cold");
  options.bytes("--size", &settings.size, 1 << 20, uint64_t{1} << 40, "bytes of all tables together");
  options.word("--mode", &settings.mode, "split|zipf", "two tables, or one with a Zipf law");
  options.count("--hot-percent", &settings.hot_percent, 1, 99, "split: size of the hot table");
  options.count("--hot-updates-percent", &settings.hot_updates_percent, 0, 100,
                "split: updates that go to the hot table");
  options.count("--zipf-percent", &settings.zipf_percent, 1, 99, "zipf: exponent in hundredths");
  options.count("--updates", &settings.updates, 1000, uint64_t{1} << 40, "updates of one repetition");
  options.count("--seed", &settings.seed, 0, 1u << 30, "seed of the random numbers");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernel runs");
  options.flag("--laps", &settings.laps, "print the time at the end of each repetition");
  options.parse(argc, argv);
  harness::with_threads(options, settings.threads, "--size " + harness::format_bytes(settings.size) + " is more memory than there is",
                        [&] { run(settings); });
}
