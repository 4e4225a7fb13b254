// The thirty kernels of PolyBench 3, written from their equations, with each object named.
#include <string>
#include <vector>

#include "../harness/options.hpp"
#include "kernels.hpp"
#include "table.hpp"

namespace polybench {
namespace {

/// Sizes of `--check`, for which the table has checksums.
constexpr Sizes kCheckSizes = {20, 24, 3, 1};
constexpr double kTolerance = 1e-9;
/// Bounds of the sizes, by the dimensions of a kernel's largest object.
constexpr Index kLargest[] = {0, Index{1} << 36, 1 << 20, 1 << 14};

struct Settings {
  std::string kernel = "gemm";
  Sizes sizes = {0, 0, 0, 0};
  bool check = false;
  bool list = false;
  bool objects = false;
};

void print_list() {
  for (const Kernel& kernel : kKernels) {
    std::printf("%-15s n %-9llu", kernel.name, static_cast<unsigned long long>(kernel.sizes.n));
    if (kernel.sizes.m != 0) std::printf(" m %llu", static_cast<unsigned long long>(kernel.sizes.m));
    if (kernel.sizes.steps != 0) std::printf(" steps %llu", static_cast<unsigned long long>(kernel.sizes.steps));
    std::printf(" repeat %llu\n", static_cast<unsigned long long>(kernel.sizes.repeat));
  }
}

/// The given sizes, and the kernel's own where none is given. A size that the kernel has not is refused.
Sizes chosen(const harness::Options& options, const Kernel& kernel, const Sizes& given) {
  Sizes sizes = kernel.sizes;
  const auto choose = [&](const char* name, Index value, Index* size) {
    if (value == 0) return;
    if (*size == 0) options.refuse(std::string(kernel.name) + " has no " + name);
    *size = value;
  };
  choose("--n", given.n, &sizes.n);
  choose("--m", given.m, &sizes.m);
  choose("--steps", given.steps, &sizes.steps);
  choose("--repeat", given.repeat, &sizes.repeat);
  if (sizes.n > kLargest[kernel.dimensions]) {
    options.refuse("--n of " + std::string(kernel.name) + " wants at most " + std::to_string(kLargest[kernel.dimensions]));
  }
  if (kernel.run == gramschmidt && sizes.m < sizes.n) options.refuse("--m of gramschmidt wants at least --n");
  return sizes;
}

void measure(const Kernel& kernel, const Sizes& sizes, bool objects) {
  Run run(sizes);
  kernel.run(run);
  std::printf("%s: n %llu checksum %.12e\n", kernel.name, static_cast<unsigned long long>(sizes.n), run.checksum);
  if (objects) run.objects.print();
  harness::print_measure("kernel_seconds", run.clock.seconds());
}

/// Whether the kernel has the checksum that a second implementation has.
bool agrees(const Kernel& kernel) {
  Run run(kCheckSizes);
  kernel.run(run);
  const bool equal = std::fabs(run.checksum - kernel.check) <= kTolerance * std::fabs(kernel.check);
  std::printf("%s: %s\n", kernel.name, equal ? "agrees with the second implementation" : "differs from the second implementation");
  if (!equal) std::printf("%s: %.15e, not %.15e\n", kernel.name, run.checksum, kernel.check);
  return equal;
}

int run(const harness::Options& options, const Settings& settings) {
  bool equal = true;
  for (const Kernel& kernel : kKernels) {
    if (settings.kernel != "all" && settings.kernel != kernel.name) continue;
    const Sizes sizes = chosen(options, kernel, settings.sizes);
    if (settings.check) {
      equal = agrees(kernel) && equal;
    } else {
      measure(kernel, sizes, settings.objects);
    }
  }
  return equal ? 0 : 1;
}

std::string kernel_names() {
  std::string names = "all";
  for (const Kernel& kernel : kKernels) names += std::string("|") + kernel.name;
  return names;
}

}  // namespace
}  // namespace polybench

int main(int argc, char** argv) {
  polybench::Settings settings;
  const std::string names = polybench::kernel_names();
  harness::Options options("polybench", "the kernels of PolyBench 3, each object named");
  options.word("--kernel", &settings.kernel, names.c_str(), "the kernel, or all of them one after the other");
  options.count("--n", &settings.sizes.n, 2, uint64_t{1} << 36, "size of the kernel's largest objects; 0 is the kernel's own");
  options.count("--m", &settings.sizes.m, 2, 1 << 20, "the second size, where the kernel has one; 0 is the kernel's own");
  options.count("--steps", &settings.sizes.steps, 1, 1000000000, "time steps, where the kernel has them; 0 is the kernel's own");
  options.count("--repeat", &settings.sizes.repeat, 1, 1000000000, "times the kernel runs, from the same values; 0 is the kernel's own");
  options.flag("--check", &settings.check, "compare small results with those of a second implementation");
  options.flag("--list", &settings.list, "print the kernels and their own sizes");
  options.flag("--objects", &settings.objects, "print the name and the bytes of each object");
  options.parse(argc, argv);
  if (settings.list) {
    polybench::print_list();
    return 0;
  }
  try {
    return polybench::run(options, settings);
  } catch (const std::bad_alloc&) {
    options.refuse("--kernel " + settings.kernel + " of this size needs more memory than there is");
  }
}
