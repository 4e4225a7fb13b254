// Factors of matrices, and systems of equations.
#include "kernels.hpp"

namespace polybench {

/// cholesky: A = L Lᵀ. L's columns replace the lower triangle of A, and p holds the reciprocals of L's diagonal.
void cholesky(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(p, n);
  run.repeat([=] { fill_dominant(A, n); },
             [=] {
               for (Index i = 0; i < n; ++i) {
                 double diagonal = A[i][i];
                 for (Index k = 0; k < i; ++k) diagonal -= A[i][k] * A[i][k];
                 p[i] = 1 / std::sqrt(diagonal);
                 for (Index j = i + 1; j < n; ++j) {
                   double value = A[i][j];
                   for (Index k = 0; k < i; ++k) value -= A[j][k] * A[i][k];
                   A[j][i] = value * p[i];
                 }
               }
             });
  run.add(A.cells, n * n);
  run.add(p, n);
}

/// durbin: solves T y = -r for the symmetric Toeplitz matrix T of 1, r0, r1, ... by Levinson's and Durbin's recursion. Column k
/// of y is the solution of order k + 1, and column k of sum holds the partial sums of its reflection coefficient.
void durbin(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(y, n, n);
  MATRIX(sum, n, n);
  VECTOR(r, n);
  VECTOR(alpha, n);
  VECTOR(beta, n);
  VECTOR(out, n);
  for (Index k = 0; k < n; ++k) r[k] = 1 / static_cast<double>(k + 2);
  run.repeat([] {},
             [=] {
               beta[0] = 1;
               alpha[0] = y[0][0] = -r[0];
               for (Index k = 1; k < n; ++k) {
                 beta[k] = (1 - alpha[k - 1] * alpha[k - 1]) * beta[k - 1];
                 sum[0][k] = r[k];
                 for (Index i = 0; i < k; ++i) sum[i + 1][k] = sum[i][k] + r[k - i - 1] * y[i][k - 1];
                 alpha[k] = -sum[k][k] / beta[k];
                 for (Index i = 0; i < k; ++i) y[i][k] = y[i][k - 1] + alpha[k] * y[k - i - 1][k - 1];
                 y[k][k] = alpha[k];
               }
               for (Index i = 0; i < n; ++i) out[i] = y[i][n - 1];
             });
  run.add(out, n);
}

/// gramschmidt: A = Q R, column by column. A and Q are m × n with m at least n, R is n × n.
void gramschmidt(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, m, n);
  MATRIX(R, n, n);
  MATRIX(Q, m, n);
  const auto prepare = [=] {
    fill(A, m, 1);
    for (Index i = 0; i < m; ++i) A[i][i % n] += 4;
  };
  run.repeat(prepare, [=] {
    for (Index k = 0; k < n; ++k) {
      double squares = 0;
      for (Index i = 0; i < m; ++i) squares += A[i][k] * A[i][k];
      R[k][k] = std::sqrt(squares);
      for (Index i = 0; i < m; ++i) Q[i][k] = A[i][k] / R[k][k];
      for (Index j = k + 1; j < n; ++j) {
        double product = 0;
        for (Index i = 0; i < m; ++i) product += Q[i][k] * A[i][j];
        R[k][j] = product;
        for (Index i = 0; i < m; ++i) A[i][j] -= Q[i][k] * product;
      }
    }
  });
  run.add(Q.cells, m * n);
  for (Index k = 0; k < n; ++k) run.add(R[k] + k, n - k);
}

/// lu: A = L U, with ones on the diagonal of U. Each step changes all that is below and right of it.
void lu(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  run.repeat([=] { fill_dominant(A, n); },
             [=] {
               for (Index k = 0; k < n; ++k) {
                 for (Index j = k + 1; j < n; ++j) A[k][j] /= A[k][k];
                 for (Index i = k + 1; i < n; ++i)
                   for (Index j = k + 1; j < n; ++j) A[i][j] -= A[i][k] * A[k][j];
               }
             });
  run.add(A.cells, n * n);
}

/// ludcmp: A x = b by A = L U with ones on the diagonal of L, row by row, then L y = b and U x = y.
void ludcmp(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(b, n);
  VECTOR(x, n);
  VECTOR(y, n);
  fill(b, n, 1);
  run.repeat([=] { fill_dominant(A, n); },
             [=] {
               for (Index i = 0; i < n; ++i)
                 for (Index j = 0; j < n; ++j) {
                   const Index terms = j < i ? j : i;
                   double value = A[i][j];
                   for (Index k = 0; k < terms; ++k) value -= A[i][k] * A[k][j];
                   A[i][j] = j < i ? value / A[j][j] : value;
                 }
               for (Index i = 0; i < n; ++i) {
                 double value = b[i];
                 for (Index j = 0; j < i; ++j) value -= A[i][j] * y[j];
                 y[i] = value;
               }
               for (Index i = n; i-- > 0;) {
                 double value = y[i];
                 for (Index j = i + 1; j < n; ++j) value -= A[i][j] * x[j];
                 x[i] = value / A[i][i];
               }
             });
  run.add(x, n);
}

/// trisolv: A x = c for a lower triangular A.
void trisolv(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(x, n);
  VECTOR(c, n);
  fill_dominant(A, n);
  fill(c, n, 1);
  run.repeat([] {},
             [=] {
               for (Index i = 0; i < n; ++i) {
                 double value = c[i];
                 for (Index j = 0; j < i; ++j) value -= A[i][j] * x[j];
                 x[i] = value / A[i][i];
               }
             });
  run.add(x, n);
}

}  // namespace polybench
