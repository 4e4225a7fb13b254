// 2D Jacobi iteration: two hot grids, and snapshots of past states that are written once and then
// read only at the end.
//
//   snapshot 0 | snapshot 1 | ... | old | new        (order of allocation)
//   cold, cleared at the start    | swept in every iteration
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"

namespace {

struct Settings {
  uint64_t size = 256 << 20;
  uint64_t snapshots = 7;
  uint64_t iterations = 800;
  uint64_t threads = 2;
  uint64_t repeat = 1;
};

/// Zero everywhere: the pages are touched here, before the grids exist.
void clear(double* grid, uint64_t side) {
#pragma omp parallel for schedule(static)
  for (uint64_t row = 0; row < side; ++row) {
    for (uint64_t column = 0; column < side; ++column) grid[row * side + column] = 0;
  }
}

/// Zero inside, a wave along the upper edge, one along the left edge.
void set_boundary(double* grid, uint64_t side) {
  clear(grid, side);
  for (uint64_t i = 0; i < side; ++i) {
    grid[i] = static_cast<double>(i % 101) / 101;
    grid[i * side] = static_cast<double>(i % 53) / 53;
  }
}

[[gnu::noinline]] double* make_snapshot(uint64_t side) {
  double* grid = new double[side * side];
  clear(grid, side);
  return grid;
}

[[gnu::noinline]] double* make_old_grid(uint64_t side) {
  double* grid = new double[side * side];
  set_boundary(grid, side);
  return grid;
}

[[gnu::noinline]] double* make_new_grid(uint64_t side) {
  double* grid = new double[side * side];
  set_boundary(grid, side);
  return grid;
}

/// One sweep: each inner point becomes the mean of its four neighbours.
void sweep(const double* from, double* to, uint64_t side) {
#pragma omp parallel for schedule(static)
  for (uint64_t row = 1; row < side - 1; ++row) {
    const double* above = from + (row - 1) * side;
    const double* here = from + row * side;
    const double* below = from + (row + 1) * side;
    for (uint64_t column = 1; column < side - 1; ++column) {
      to[row * side + column] =
          0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
    }
  }
}

void run(const Settings& settings) {
  const double grids = static_cast<double>(settings.snapshots + 2);
  const auto side = static_cast<uint64_t>(
      std::sqrt(static_cast<double>(settings.size) / grids / sizeof(double)));
  std::vector<std::unique_ptr<double[]>> snapshots;
  for (uint64_t i = 0; i < settings.snapshots; ++i) snapshots.emplace_back(make_snapshot(side));
  std::unique_ptr<double[]> old_grid(make_old_grid(side));
  std::unique_ptr<double[]> new_grid(make_new_grid(side));

  // A snapshot after each equal part of the iterations.
  const uint64_t part = settings.iterations / (settings.snapshots + 1) + 1;
  harness::Stopwatch kernel;
  harness::Checksum checksum;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    set_boundary(old_grid.get(), side);
    set_boundary(new_grid.get(), side);
    kernel.start();
    for (uint64_t turn = 1; turn <= settings.iterations; ++turn) {
      sweep(old_grid.get(), new_grid.get(), side);
      std::swap(old_grid, new_grid);
      if (turn % part == 0 && turn / part <= settings.snapshots) {
        std::memcpy(snapshots[turn / part - 1].get(), old_grid.get(), side * side * sizeof(double));
      }
    }
    kernel.stop();
    for (uint64_t i = 0; i < side * side; i += 61) checksum.add(old_grid[i]);
    for (const auto& snapshot : snapshots) {
      for (uint64_t i = 0; i < side * side; i += 6101) checksum.add(snapshot[i]);
    }
  }
  std::printf("stencil: side %llu checksum %016llx\n", static_cast<unsigned long long>(side),
              checksum.value());
  harness::print_measure("kernel_seconds", kernel.seconds());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("stencil", "2D Jacobi iteration beside cold snapshots");
  options.bytes("--size", &settings.size, 1 << 20, uint64_t{1} << 40,
                "bytes of grids and snapshots together");
  options.count("--snapshots", &settings.snapshots, 0, 1000, "past states kept");
  options.count("--iterations", &settings.iterations, 1, 1000000000, "sweeps");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernel runs");
  options.parse(argc, argv);
  if (settings.size / (settings.snapshots + 2) < 9 * sizeof(double)) {
    options.refuse("--size is too small for --snapshots: a grid needs at least 3 x 3 points");
  }
  harness::with_threads(options, settings.threads, "--size " + harness::format_bytes(settings.size) + " is more memory than there is",
                        [&] { run(settings); });
}
