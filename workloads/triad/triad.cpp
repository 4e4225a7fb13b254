// STREAM-like triad over three hot arrays, beside cold archives that are read rarely.
//
// The archives are made and filled first, as in a program that loads its input; memory given out
// in the order of first touch then goes to them, and the arrays that the kernel streams through
// come too late.
//
//   archive 0 | archive 1 | ... | a | b | c        (order of allocation)
//   cold, one block read at times | streamed in every iteration
#include <memory>
#include <string>
#include <vector>

#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"

namespace {

constexpr uint64_t kArchives = 4;
constexpr uint64_t kBlock = 64 << 10;  // doubles of an archive that one visit reads: 512 KiB

struct Settings {
  uint64_t size = 256 << 20;
  uint64_t hot_percent = 20;
  uint64_t iterations = 2500;
  uint64_t visit_every = 100;
  uint64_t threads = 2;
  uint64_t repeat = 1;
};

void fill(double* values, uint64_t count, double first) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) values[i] = first + static_cast<double>(i % 1024) / 1024;
}

[[gnu::noinline]] double* make_archive(uint64_t count, double first) {
  double* values = new double[count];
  fill(values, count, first);
  return values;
}

[[gnu::noinline]] double* make_destination(uint64_t count) {
  double* values = new double[count];
  fill(values, count, 0);
  return values;
}

[[gnu::noinline]] double* make_addend(uint64_t count) {
  double* values = new double[count];
  fill(values, count, 1);
  return values;
}

[[gnu::noinline]] double* make_factor(uint64_t count) {
  double* values = new double[count];
  fill(values, count, 2);
  return values;
}

/// a = b + q·c. Element-wise, so the result does not depend on the number of threads.
void triad(double* a, const double* b, const double* c, double q, uint64_t count) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) a[i] = b[i] + q * c[i];
}

/// Sum of one block of an archive: the rare visit to cold data.
double visit(const double* archive, uint64_t count, uint64_t turn) {
  const uint64_t blocks = count / kBlock + 1;
  const uint64_t begin = (turn * 7 % blocks) * kBlock;
  const uint64_t end = begin + kBlock < count ? begin + kBlock : count;
  double sum = 0;
  for (uint64_t i = begin; i < end; ++i) sum += archive[i];
  return sum;
}

void run(const Settings& settings) {
  const uint64_t hot_count = settings.size / 100 * settings.hot_percent / 3 / sizeof(double);
  const uint64_t cold_count =
      settings.size / 100 * (100 - settings.hot_percent) / kArchives / sizeof(double);
  std::vector<std::unique_ptr<double[]>> archives;
  for (uint64_t i = 0; i < kArchives; ++i) {
    archives.emplace_back(make_archive(cold_count, static_cast<double>(i)));
  }
  std::unique_ptr<double[]> a(make_destination(hot_count));
  std::unique_ptr<double[]> b(make_addend(hot_count));
  std::unique_ptr<double[]> c(make_factor(hot_count));

  harness::Stopwatch kernel;
  harness::Checksum checksum;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    double visited = 0;
    kernel.start();
    for (uint64_t turn = 0; turn < settings.iterations; ++turn) {
      triad(a.get(), b.get(), c.get(), 1.0 + 1.0 / static_cast<double>(turn + 2), hot_count);
      if (turn % settings.visit_every == 0) {
        visited += visit(archives[turn % kArchives].get(), cold_count, turn);
      }
    }
    kernel.stop();
    checksum.add(visited);
    for (uint64_t i = 0; i < hot_count; i += 97) checksum.add(a[i]);
  }
  std::printf("triad: checksum %016llx\n", checksum.value());
  harness::print_measure("kernel_seconds", kernel.seconds());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("triad", "three streamed arrays beside cold archives");
  options.bytes("--size", &settings.size, 1 << 20, uint64_t{1} << 40, "bytes of all arrays together");
  options.count("--hot-percent", &settings.hot_percent, 1, 99, "share of the three streamed arrays");
  options.count("--iterations", &settings.iterations, 1, 1000000000, "passes over the streamed arrays");
  options.count("--visit-every", &settings.visit_every, 1, 1000000000,
                "passes between two visits to an archive");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernel runs");
  options.parse(argc, argv);
  harness::with_threads(options, settings.threads, "--size " + harness::format_bytes(settings.size) + " is more memory than there is",
                        [&] { run(settings); });
}
