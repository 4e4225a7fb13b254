// Products of matrices and vectors.
#include "kernels.hpp"

namespace polybench {

namespace {

constexpr double kAlpha = 1.5;
constexpr double kBeta = 1.2;

void clear(double* vector, Index n) {
  for (Index i = 0; i < n; ++i) vector[i] = 0;
}

}  // namespace

/// atax: y = Aᵀ (A x), with tmp = A x.
void atax(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(x, n);
  VECTOR(y, n);
  VECTOR(tmp, n);
  fill(A, n, 1);
  fill(x, n, 1);
  run.repeat([=] { clear(y, n); },
             [=] {
               for (Index i = 0; i < n; ++i) {
                 double sum = 0;
                 for (Index j = 0; j < n; ++j) sum += A[i][j] * x[j];
                 tmp[i] = sum;
                 for (Index j = 0; j < n; ++j) y[j] += A[i][j] * sum;
               }
             });
  run.add(y, n);
}

/// bicg: s = Aᵀ r and q = A p.
void bicg(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(r, n);
  VECTOR(s, n);
  VECTOR(p, n);
  VECTOR(q, n);
  fill(A, n, 1);
  fill(r, n, 1);
  fill(p, n, 2);
  run.repeat([=] { clear(s, n); },
             [=] {
               for (Index i = 0; i < n; ++i) {
                 double sum = 0;
                 for (Index j = 0; j < n; ++j) {
                   s[j] += r[i] * A[i][j];
                   sum += A[i][j] * p[j];
                 }
                 q[i] = sum;
               }
             });
  run.add(s, n);
  run.add(q, n);
}

/// mvt: x1 = x1 + A y1 and x2 = x2 + Aᵀ y2; the second reads A by columns.
void mvt(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(x1, n);
  VECTOR(x2, n);
  VECTOR(y1, n);
  VECTOR(y2, n);
  fill(A, n, 1);
  fill(y1, n, 3);
  fill(y2, n, 4);
  const auto prepare = [=] {
    fill(x1, n, 1);
    fill(x2, n, 2);
  };
  run.repeat(prepare, [=] {
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) x1[i] += A[i][j] * y1[j];
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) x2[i] += A[j][i] * y2[j];
  });
  run.add(x1, n);
  run.add(x2, n);
}

/// gemver: A = A + u1 v1ᵀ + u2 v2ᵀ; x = β Aᵀ y + z, which reads A by columns; w = α A x.
void gemver(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  VECTOR(u1, n);
  VECTOR(v1, n);
  VECTOR(u2, n);
  VECTOR(v2, n);
  VECTOR(w, n);
  VECTOR(x, n);
  VECTOR(y, n);
  VECTOR(z, n);
  fill(u1, n, 1);
  fill(v1, n, 2);
  fill(u2, n, 3);
  fill(v2, n, 4);
  fill(y, n, 5);
  fill(z, n, 6);
  run.repeat([=] { fill(A, n, 1); },
             [=] {
               for (Index i = 0; i < n; ++i)
                 for (Index j = 0; j < n; ++j) A[i][j] += u1[i] * v1[j] + u2[i] * v2[j];
               for (Index i = 0; i < n; ++i) {
                 double sum = 0;
                 for (Index j = 0; j < n; ++j) sum += kBeta * A[j][i] * y[j];
                 x[i] = sum + z[i];
               }
               for (Index i = 0; i < n; ++i) {
                 double sum = 0;
                 for (Index j = 0; j < n; ++j) sum += kAlpha * A[i][j] * x[j];
                 w[i] = sum;
               }
             });
  run.add(w, n);
}

/// gesummv: y = α A x + β B x, with tmp = A x.
void gesummv(Run& run) {
  const Index n = run.sizes.n;
  MATRIX(A, n, n);
  MATRIX(B, n, n);
  VECTOR(x, n);
  VECTOR(y, n);
  VECTOR(tmp, n);
  fill(A, n, 1);
  fill(B, n, 2);
  fill(x, n, 1);
  run.repeat([] {},
             [=] {
               for (Index i = 0; i < n; ++i) {
                 double first = 0, second = 0;
                 for (Index j = 0; j < n; ++j) {
                   first += A[i][j] * x[j];
                   second += B[i][j] * x[j];
                 }
                 tmp[i] = first;
                 y[i] = kAlpha * first + kBeta * second;
               }
             });
  run.add(y, n);
}

}  // namespace polybench
