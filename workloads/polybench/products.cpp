// Products of matrices.
#include "kernels.hpp"

namespace polybench {

namespace {

constexpr double kAlpha = 1.5;
constexpr double kBeta = 1.2;

/// to = factor · left · right; `rows` rows, and `depth` terms in each sum.
void multiply(Rows<double> to, double factor, Rows<double> left, Rows<double> right, Index rows, Index depth) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < to.columns; ++j) {
      double sum = 0;
      for (Index k = 0; k < depth; ++k) sum += factor * left[i][k] * right[k][j];
      to[i][j] = sum;
    }
}

/// to = beta · to + alpha · left · right.
void multiply_onto(Rows<double> to, double alpha, double beta, Rows<double> left, Rows<double> right, Index rows, Index depth) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < to.columns; ++j) {
      double sum = to[i][j] * beta;
      for (Index k = 0; k < depth; ++k) sum += alpha * left[i][k] * right[k][j];
      to[i][j] = sum;
    }
}

}  // namespace

/// gemm: C = α A B + β C. A and C have m rows, B has n.
void gemm(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, m, n);
  MATRIX(B, n, n);
  MATRIX(C, m, n);
  fill(A, m, 1);
  fill(B, n, 2);
  run.repeat([=] { fill(C, m, 3); }, [=] { multiply_onto(C, kAlpha, kBeta, A, B, m, n); });
  run.add(C.cells, m * n);
}

/// 2mm: D = α A B C + β D. A, D and tmp = α A B have m rows, B and C have n.
void two_products(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, m, n);
  MATRIX(B, n, n);
  MATRIX(C, n, n);
  MATRIX(D, m, n);
  MATRIX(tmp, m, n);
  fill(A, m, 1);
  fill(B, n, 2);
  fill(C, n, 3);
  run.repeat([=] { fill(D, m, 4); },
             [=] {
               multiply(tmp, kAlpha, A, B, m, n);
               multiply_onto(D, 1, kBeta, tmp, C, m, n);
             });
  run.add(D.cells, m * n);
}

/// 3mm: G = (A B) (C D), with E = A B and F = C D. A, D, E and G have m rows, C has m columns, B and F are n × n.
void three_products(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, m, n);
  MATRIX(B, n, n);
  MATRIX(C, n, m);
  MATRIX(D, m, n);
  MATRIX(E, m, n);
  MATRIX(F, n, n);
  MATRIX(G, m, n);
  fill(A, m, 1);
  fill(B, n, 2);
  fill(C, n, 3);
  fill(D, m, 4);
  run.repeat([] {},
             [=] {
               multiply(E, 1, A, B, m, n);
               multiply(F, 1, C, D, n, m);
               multiply(G, 1, E, F, m, n);
             });
  run.add(G.cells, m * n);
}

/// symm: C = α A B + β C. A is symmetric, m × m, and its lower triangle is read; B and C are m × n.
void symm(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, m, m);
  MATRIX(B, m, n);
  MATRIX(C, m, n);
  fill(A, m, 1);
  fill(B, m, 2);
  run.repeat([=] { fill(C, m, 3); },
             [=] {
               for (Index i = 0; i < m; ++i)
                 for (Index j = 0; j < n; ++j) {
                   double sum = 0;
                   for (Index k = 0; k < i; ++k) {
                     C[k][j] += kAlpha * B[i][j] * A[i][k];
                     sum += B[k][j] * A[i][k];
                   }
                   C[i][j] = kBeta * C[i][j] + kAlpha * B[i][j] * A[i][i] + kAlpha * sum;
                 }
             });
  run.add(C.cells, m * n);
}

/// syrk: C = α A Aᵀ + β C. A is n × m, C is n × n.
void syrk(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, n, m);
  MATRIX(C, n, n);
  fill(A, n, 1);
  run.repeat([=] { fill(C, n, 2); },
             [=] {
               for (Index i = 0; i < n; ++i)
                 for (Index j = 0; j < n; ++j) {
                   double sum = C[i][j] * kBeta;
                   for (Index k = 0; k < m; ++k) sum += kAlpha * A[i][k] * A[j][k];
                   C[i][j] = sum;
                 }
             });
  run.add(C.cells, n * n);
}

/// syr2k: C = α A Bᵀ + α B Aᵀ + β C. A and B are n × m, C is n × n.
void syr2k(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, n, m);
  MATRIX(B, n, m);
  MATRIX(C, n, n);
  fill(A, n, 1);
  fill(B, n, 2);
  run.repeat([=] { fill(C, n, 3); },
             [=] {
               for (Index i = 0; i < n; ++i)
                 for (Index j = 0; j < n; ++j) {
                   double sum = C[i][j] * kBeta;
                   for (Index k = 0; k < m; ++k) sum += kAlpha * A[i][k] * B[j][k] + kAlpha * B[i][k] * A[j][k];
                   C[i][j] = sum;
                 }
             });
  run.add(C.cells, n * n);
}

/// trmm: B = α A B. A is lower triangular, m × m, with ones on its diagonal; B is m × n.
void trmm(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  MATRIX(A, m, m);
  MATRIX(B, m, n);
  fill(A, m, 1);
  run.repeat([=] { fill(B, m, 2); },
             [=] {
               for (Index i = m; i-- > 0;)
                 for (Index j = 0; j < n; ++j) {
                   double sum = B[i][j];
                   for (Index k = 0; k < i; ++k) sum += A[i][k] * B[k][j];
                   B[i][j] = kAlpha * sum;
                 }
             });
  run.add(B.cells, m * n);
}

/// doitgen: A[r][q] = A[r][q] C4, each a vector of m values times an m × m matrix, by way of sum[r][q]; r and q are below n.
void doitgen(Run& run) {
  const Index n = run.sizes.n, m = run.sizes.m;
  CUBE(A, n, n, m);
  CUBE(sum, n, n, m);
  MATRIX(C4, m, m);
  fill(C4, m, 1);
  const auto prepare = [=] {
    for (Index r = 0; r < n; ++r)
      for (Index q = 0; q < n; ++q)
        for (Index p = 0; p < m; ++p) A[r][q][p] = ratio(r * q + p, m);
  };
  run.repeat(prepare, [=] {
    for (Index r = 0; r < n; ++r)
      for (Index q = 0; q < n; ++q) {
        for (Index p = 0; p < m; ++p) {
          sum[r][q][p] = 0;
          for (Index s = 0; s < m; ++s) sum[r][q][p] += A[r][q][s] * C4[s][p];
        }
        for (Index p = 0; p < m; ++p) A[r][q][p] = sum[r][q][p];
      }
  });
  run.add(A.cells, n * n * m);
}

}  // namespace polybench
