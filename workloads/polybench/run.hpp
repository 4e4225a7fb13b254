// What a kernel is given: its sizes, a place for its objects, a clock, and the sum of its results.
#pragma once

#include <cmath>
#include <cstdint>

#include "../harness/objects.hpp"
#include "../harness/result.hpp"

namespace polybench {

using Index = uint64_t;

/// The sizes of a run. What `m` and `steps` are is said at each kernel that uses them.
struct Sizes {
  Index n = 0;
  Index m = 0;
  Index steps = 0;
  Index repeat = 1;
};

/// A matrix by rows: `A[i][j]`.
template <typename Value>
struct Rows {
  Value* cells;
  Index columns;
  Value* operator[](Index row) const { return cells + row * columns; }
};

/// An array of three dimensions: `A[i][j][k]`.
template <typename Value>
struct Planes {
  Value* cells;
  Index rows, columns;
  Rows<Value> operator[](Index plane) const { return {cells + plane * rows * columns, columns}; }
};

class Run {
 public:
  explicit Run(const Sizes& sizes) : sizes(sizes) {}

  /// Prepares and computes as often as `--repeat` says; the time of the computations is measured.
  template <typename Prepare, typename Compute>
  void repeat(Prepare prepare, Compute compute) {
    for (Index turn = 0; turn < sizes.repeat; ++turn) {
      prepare();
      clock.start();
      compute();
      clock.stop();
    }
  }

  /// Adds an array of the result to the checksum: a sum with weights that tell places apart.
  template <typename Value>
  void add(const Value* values, Index count) {
    for (Index i = 0; i < count; ++i) checksum += static_cast<double>(values[i]) * static_cast<double>(1 + i % 97);
  }

  const Sizes sizes;
  harness::Objects objects;
  harness::Stopwatch clock;
  double checksum = 0;
};

/// (value mod n) / n: the initial values are such ratios of the indices.
inline double ratio(Index value, Index n) { return static_cast<double>(value % n) / static_cast<double>(n); }

/// Fills a matrix with (i j + shift mod columns) / columns.
inline void fill(Rows<double> matrix, Index rows, Index shift) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < matrix.columns; ++j) matrix[i][j] = ratio(i * j + shift, matrix.columns);
}

/// Fills a vector with (i + shift mod n) / n.
inline void fill(double* vector, Index n, Index shift) {
  for (Index i = 0; i < n; ++i) vector[i] = ratio(i + shift, n);
}

/// A matrix with dominant diagonal, so that it has factors: symmetric, (i j + 1 mod n) / n, and n + 1 on the diagonal.
inline void fill_dominant(Rows<double> matrix, Index n) {
  fill(matrix, n, 1);
  for (Index i = 0; i < n; ++i) matrix[i][i] = static_cast<double>(n) + 1;
}

}  // namespace polybench

/// Objects of a kernel, named as its equations name them. `run` is the kernel's argument.
#define VECTOR(name, count) double* const name = NAMED_ARRAY(run.objects, double, #name, count)
#define MATRIX(name, rows, columns) const Rows<double> name{NAMED_ARRAY(run.objects, double, #name, (rows) * (columns)), columns}
#define CUBE(name, planes, rows, columns) \
  const Planes<double> name{NAMED_ARRAY(run.objects, double, #name, (planes) * (rows) * (columns)), rows, columns}
#define COUNT_MATRIX(name, rows, columns) \
  const Rows<uint32_t> name{NAMED_ARRAY(run.objects, uint32_t, #name, (rows) * (columns)), columns}
#define COUNT_CUBE(name, planes, rows, columns) \
  const Planes<uint32_t> name{NAMED_ARRAY(run.objects, uint32_t, #name, (planes) * (rows) * (columns)), rows, columns}
