// Matrices of correlations.
#include "kernels.hpp"

namespace polybench {

namespace {

void find_means(double* mean, Rows<double> data, Index m) {
  for (Index j = 0; j < data.columns; ++j) {
    mean[j] = 0;
    for (Index i = 0; i < m; ++i) mean[j] += data[i][j];
    mean[j] /= static_cast<double>(m);
  }
}

/// symmat[a][b] = scale · sum over i of data[i][a] data[i][b].
void multiply_columns(Rows<double> symmat, double scale, Rows<double> data, Index m) {
  for (Index a = 0; a < data.columns; ++a)
    for (Index b = a; b < data.columns; ++b) {
      double sum = 0;
      for (Index i = 0; i < m; ++i) sum += data[i][a] * data[i][b];
      symmat[a][b] = symmat[b][a] = scale * sum;
    }
}

}  // namespace

/// correlation: the correlations of n variables, of each of which the columns of data hold m values.
void correlation(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(data, m, n);
  MATRIX(symmat, n, n);
  VECTOR(mean, n);
  VECTOR(stddev, n);
  run.repeat([=] { fill(data, m, 1); },
             [=] {
               find_means(mean, data, m);
               for (Index j = 0; j < n; ++j) {
                 double squares = 0;
                 for (Index i = 0; i < m; ++i) squares += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
                 stddev[j] = std::sqrt(squares / static_cast<double>(m));
                 if (stddev[j] <= 0.1) stddev[j] = 1;  // of a variable that is nearly constant
               }
               const double root = std::sqrt(static_cast<double>(m));
               for (Index i = 0; i < m; ++i)
                 for (Index j = 0; j < n; ++j) data[i][j] = (data[i][j] - mean[j]) / (root * stddev[j]);
               multiply_columns(symmat, 1, data, m);
               for (Index j = 0; j < n; ++j) symmat[j][j] = 1;
             });
  run.add(symmat.cells, n * n);
}

/// covariance: the covariances of n variables, of each of which the columns of data hold m values.
void covariance(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(data, m, n);
  MATRIX(symmat, n, n);
  VECTOR(mean, n);
  run.repeat([=] { fill(data, m, 1); },
             [=] {
               find_means(mean, data, m);
               for (Index i = 0; i < m; ++i)
                 for (Index j = 0; j < n; ++j) data[i][j] -= mean[j];
               multiply_columns(symmat, 1 / static_cast<double>(m - 1), data, m);
             });
  run.add(symmat.cells, n * n);
}

}  // namespace polybench
