// Recurrences over tables.
#include <algorithm>

#include "kernels.hpp"

namespace polybench {

/// dynprog: c[i][j] = W[i][j] + sum of c[i][k] + c[k][j] over i < k < j, modulo 2³²; sum_c[i][j] holds the partial sums. Half of
/// sum_c is used. Each step begins anew, and out adds up c[0][n - 1].
void dynprog(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  COUNT_MATRIX(c, n, n);
  COUNT_MATRIX(W, n, n);
  COUNT_CUBE(sum_c, n, n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) W[i][j] = static_cast<uint32_t>((i * j + 1) % 7);
  uint32_t out = 0;
  run.repeat([&] { out = 0; },
             [=, &out] {
               for (Index step = 0; step < steps; ++step) {
                 std::fill(c.cells, c.cells + n * n, 0);
                 for (Index i = n - 1; i-- > 0;)
                   for (Index j = i + 1; j < n; ++j) {
                     sum_c[i][j][i] = 0;
                     for (Index k = i + 1; k < j; ++k) sum_c[i][j][k] = sum_c[i][j][k - 1] + c[i][k] + c[k][j];
                     c[i][j] = sum_c[i][j][j - 1] + W[i][j];
                   }
                 out += c[0][n - 1];
               }
             });
  run.add(c.cells, n * n);
  run.add(&out, 1);
}

/// floyd-warshall: the lengths of the shortest paths between all pairs; path[i][j] = min(path[i][j], path[i][k] + path[k][j]).
void floyd_warshall(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(path, n, n);
  const auto prepare = [=] {
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        const bool joined = (i + j) % 13 != 0 && (i + j) % 7 != 0 && (i + j) % 11 != 0;
        path[i][j] = joined ? static_cast<double>(i * j % 7 + 1) : 999;
      }
  };
  run.repeat(prepare, [=] {
    for (Index k = 0; k < n; ++k)
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j) path[i][j] = std::min(path[i][j], path[i][k] + path[k][j]);
  });
  run.add(path.cells, n * n);
}

/// reg_detect: for each pair j ≤ i below n, diff repeats sum_tang m times, sum_diff holds its partial sums, mean the last of them;
/// path adds the means along the diagonals. Modulo 2³². Half of diff and of sum_diff is used.
void reg_detect(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m, steps = run.sizes.steps;
  COUNT_MATRIX(sum_tang, n, n);
  COUNT_MATRIX(mean, n, n);
  COUNT_MATRIX(path, n, n);
  COUNT_CUBE(diff, n, n, m);
  COUNT_CUBE(sum_diff, n, n, m);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) sum_tang[j][i] = static_cast<uint32_t>((i + 1) * (j + 1));
  run.repeat([] {},
             [=] {
               for (Index step = 0; step < steps; ++step) {
                 for (Index j = 0; j < n; ++j)
                   for (Index i = j; i < n; ++i)
                     for (Index k = 0; k < m; ++k) diff[j][i][k] = sum_tang[j][i];
                 for (Index j = 0; j < n; ++j)
                   for (Index i = j; i < n; ++i) {
                     sum_diff[j][i][0] = diff[j][i][0];
                     for (Index k = 1; k < m; ++k) sum_diff[j][i][k] = sum_diff[j][i][k - 1] + diff[j][i][k];
                     mean[j][i] = sum_diff[j][i][m - 1];
                   }
                 for (Index i = 0; i < n; ++i) path[0][i] = mean[0][i];
                 for (Index j = 1; j < n; ++j)
                   for (Index i = j; i < n; ++i) path[j][i] = path[j - 1][i - 1] + mean[j][i];
               }
             });
  for (Index j = 0; j < n; ++j) run.add(path[j] + j, n - j);
}

}  // namespace polybench
