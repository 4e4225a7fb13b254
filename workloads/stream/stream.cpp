// The four loops of STREAM (McCalpin) over three arrays, on the heap or of static storage.
//
//   copy   c = a
//   scale  b = s c
//   add    c = a + b
//   triad  a = b + s c
#include <cmath>

#include "../harness/objects.hpp"
#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"

constexpr uint64_t kStaticCount = 8 << 20;

// What `--static` uses: variables of static storage, which profiles call by these names.
alignas(harness::kAlignment) static double static_a[kStaticCount];
alignas(harness::kAlignment) static double static_b[kStaticCount];
alignas(harness::kAlignment) static double static_c[kStaticCount];

namespace {

constexpr double kScalar = 3;
constexpr double kTolerance = 1e-9;

struct Settings {
  uint64_t size = 3 * kStaticCount * sizeof(double);
  uint64_t iterations = 20;
  uint64_t threads = 2;
  uint64_t repeat = 1;
  bool is_static = false;
  bool check = false;
  bool objects = false;
};

struct Arrays {
  double *a, *b, *c;
  uint64_t count;
};

/// The values that all elements of an array have.
struct Values {
  double a = 1, b = 2, c = 0;
};

void fill(const Arrays& arrays) {
  const Values first;
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < arrays.count; ++i) {
    arrays.a[i] = first.a;
    arrays.b[i] = first.b;
    arrays.c[i] = first.c;
  }
}

void copy(double* to, const double* from, uint64_t count) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) to[i] = from[i];
}

void scale(double* to, const double* from, double factor, uint64_t count) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) to[i] = factor * from[i];
}

void add(double* to, const double* left, const double* right, uint64_t count) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) to[i] = left[i] + right[i];
}

void triad(double* to, const double* left, const double* right, double factor, uint64_t count) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) to[i] = left[i] + factor * right[i];
}

/// An iteration multiplies a by s² + 2 s: by 15 with STREAM's scalar. Every other one takes the scalar that divides by 15, so that
/// the values stay as large as they are.
double scalar_of(uint64_t iteration) { return iteration % 2 == 0 ? kScalar : std::sqrt(1 + 1 / (kScalar * kScalar + 2 * kScalar)) - 1; }

/// The four loops, as often as asked.
void iterate(const Arrays& arrays, uint64_t iterations) {
  const auto [a, b, c, count] = arrays;
  for (uint64_t i = 0; i < iterations; ++i) {
    const double scalar = scalar_of(i);
    copy(c, a, count);
    scale(b, c, scalar, count);
    add(c, a, b, count);
    triad(a, b, c, scalar, count);
  }
}

/// What every element has after the iterations, computed with three numbers.
Values expected(uint64_t iterations) {
  Values values;
  for (uint64_t i = 0; i < iterations; ++i) {
    const double scalar = scalar_of(i);
    values.c = values.a;
    values.b = scalar * values.c;
    values.c = values.a + values.b;
    values.a = values.b + scalar * values.c;
  }
  return values;
}

bool all_equal(const double* values, uint64_t count, double wanted, const char* name) {
  for (uint64_t i = 0; i < count; ++i) {
    if (std::fabs(values[i] - wanted) <= kTolerance * std::fabs(wanted)) continue;
    std::printf("stream: %s[%llu] is %.15e, not %.15e\n", name, static_cast<unsigned long long>(i), values[i], wanted);
    return false;
  }
  return true;
}

bool agrees(const Arrays& arrays, uint64_t iterations) {
  const Values values = expected(iterations);
  return all_equal(arrays.a, arrays.count, values.a, "a") && all_equal(arrays.b, arrays.count, values.b, "b") &&
         all_equal(arrays.c, arrays.count, values.c, "c");
}

Arrays arrays_of(const Settings& settings, harness::Objects& objects) {
  const uint64_t count = settings.size / 3 / sizeof(double);
  if (settings.is_static) return {static_a, static_b, static_c, count};
  double* a = NAMED_ARRAY(objects, double, "a", count);
  double* b = NAMED_ARRAY(objects, double, "b", count);
  double* c = NAMED_ARRAY(objects, double, "c", count);
  return {a, b, c, count};
}

int run(const Settings& settings) {
  harness::Objects objects;
  const Arrays arrays = arrays_of(settings, objects);
  harness::Stopwatch kernel;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    fill(arrays);
    kernel.start();
    iterate(arrays, settings.iterations);
    kernel.stop();
  }
  double sum = 0;
  for (uint64_t i = 0; i < arrays.count; ++i) sum += arrays.a[i] + arrays.b[i] + arrays.c[i];
  std::printf("stream: count %llu checksum %.12e\n", static_cast<unsigned long long>(arrays.count), sum);
  if (settings.objects) objects.print();
  harness::print_measure("kernel_seconds", kernel.seconds());
  if (!settings.check) return 0;
  if (!agrees(arrays, settings.iterations)) return 1;
  std::printf("stream: agrees with the values of one element\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("stream", "STREAM's copy, scale, add and triad over three arrays");
  options.bytes("--size", &settings.size, 1 << 10, uint64_t{1} << 40, "bytes of the three arrays together");
  options.flag("--static", &settings.is_static, "use arrays of static storage, of at most 192MiB together");
  options.count("--iterations", &settings.iterations, 1, 1000000000, "times that the four loops run");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernel runs, from the same values");
  options.flag("--check", &settings.check, "compare every element with what it must be");
  options.flag("--objects", &settings.objects, "print the name and the bytes of each object on the heap");
  options.parse(argc, argv);
  if (settings.is_static && settings.size > 3 * kStaticCount * sizeof(double)) {
    options.refuse("--static has arrays of 192MiB together; --size is more");
  }
  return harness::with_threads(options, settings.threads, "--size " + harness::format_bytes(settings.size) + " is more memory than there is",
                               [&] { return run(settings); });
}
