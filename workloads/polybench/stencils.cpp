// Time steps on grids.
#include "kernels.hpp"

namespace polybench {

namespace {

/// One half step of adi on a row: solves the tridiagonal system of the row by elimination and substitution.
void solve_row(double* X, const double* A, double* B, Index n) {
  for (Index j = 1; j < n; ++j) {
    X[j] -= X[j - 1] * A[j] / B[j - 1];
    B[j] -= A[j] * A[j] / B[j - 1];
  }
  X[n - 1] /= B[n - 1];
  for (Index j = n - 1; j-- > 0;) X[j] = (X[j] - A[j + 1] * X[j + 1]) / B[j];
}

/// The other half step: the systems of all columns, row by row.
void solve_columns(Rows<double> X, Rows<double> A, Rows<double> B, Index n) {
  for (Index i = 1; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      X[i][j] -= X[i - 1][j] * A[i][j] / B[i - 1][j];
      B[i][j] -= A[i][j] * A[i][j] / B[i - 1][j];
    }
  for (Index j = 0; j < n; ++j) X[n - 1][j] /= B[n - 1][j];
  for (Index i = n - 1; i-- > 0;)
    for (Index j = 0; j < n; ++j) X[i][j] = (X[i][j] - A[i + 1][j] * X[i + 1][j]) / B[i][j];
}

}  // namespace

/// adi: alternating directions: each step solves a tridiagonal system in each row of X, then in each column. A holds what is beside
/// the diagonals, B the diagonals, which each half step eliminates further.
void adi(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  MATRIX(X, n, n);
  MATRIX(A, n, n);
  MATRIX(B, n, n);
  const auto prepare = [=] {
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        X[i][j] = ratio(i * j + 1, n);
        A[i][j] = 0.01 * ratio(i * j + 2, n);
        B[i][j] = 1 + 0.02 * ratio(i * j + 3, n);
      }
  };
  run.repeat(prepare, [=] {
    for (Index step = 0; step < steps; ++step) {
      for (Index i = 0; i < n; ++i) solve_row(X[i], A[i], B[i], n);
      solve_columns(X, A, B, n);
    }
  });
  run.add(X.cells, n * n);
}

/// fdtd-2d: an electric field (ex, ey) and a magnetic field hz on a plane, by finite differences in time; fict drives ey's edge.
void fdtd_2d(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  MATRIX(ex, n, n);
  MATRIX(ey, n, n);
  MATRIX(hz, n, n);
  VECTOR(fict, steps);
  for (Index step = 0; step < steps; ++step) fict[step] = static_cast<double>(step);
  const auto prepare = [=] {
    fill(ex, n, 1);
    fill(ey, n, 2);
    fill(hz, n, 3);
  };
  run.repeat(prepare, [=] {
    for (Index step = 0; step < steps; ++step) {
      for (Index j = 0; j < n; ++j) ey[0][j] = fict[step];
      for (Index i = 1; i < n; ++i)
        for (Index j = 0; j < n; ++j) ey[i][j] -= 0.5 * (hz[i][j] - hz[i - 1][j]);
      for (Index i = 0; i < n; ++i)
        for (Index j = 1; j < n; ++j) ex[i][j] -= 0.5 * (hz[i][j] - hz[i][j - 1]);
      for (Index i = 0; i + 1 < n; ++i)
        for (Index j = 0; j + 1 < n; ++j) hz[i][j] -= 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
    }
  });
  run.add(ex.cells, n * n);
  run.add(ey.cells, n * n);
  run.add(hz.cells, n * n);
}

/// fdtd-apml: the magnetic field Hz and its flux Bza in a cube of n³ cells with an absorbing layer (anisotropic, perfectly
/// matched). Ex and Ey are the electric field; Ax is Ex beyond the last y, Ry is Ey beyond the last x. cz, cx and cy are the
/// coefficients of the layer in each direction, at the lower (m) and the upper (p) face of a cell.
void fdtd_apml(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  CUBE(Ex, n, n, n);
  CUBE(Ey, n, n, n);
  CUBE(Bza, n, n, n);
  CUBE(Hz, n, n, n);
  MATRIX(Ax, n, n);
  MATRIX(Ry, n, n);
  MATRIX(clf, n, n);
  MATRIX(tmp, n, n);
  VECTOR(czm, n);
  VECTOR(czp, n);
  VECTOR(cxmh, n);
  VECTOR(cxph, n);
  VECTOR(cymh, n);
  VECTOR(cyph, n);
  constexpr double mui = 0.5, ch = 0.25;
  const auto prepare = [=] {
    for (Index z = 0; z < n; ++z) {
      czm[z] = cxmh[z] = cymh[z] = 1 + ratio(z + 1, n);
      czp[z] = cxph[z] = cyph[z] = 3 + ratio(z + 2, n);
      fill(Ex[z], n, z + 1);
      fill(Ey[z], n, z + 2);
      fill(Bza[z], n, z + 3);
      fill(Hz[z], n, z + 4);
    }
    fill(Ax, n, 1);
    fill(Ry, n, 2);
  };
  run.repeat(prepare, [=] {
    for (Index step = 0; step < steps; ++step)
      for (Index z = 0; z < n; ++z)
        for (Index y = 0; y < n; ++y)
          for (Index x = 0; x < n; ++x) {
            const double ex_after = y + 1 < n ? Ex[z][y + 1][x] : Ax[z][x];
            const double ey_after = x + 1 < n ? Ey[z][y][x + 1] : Ry[z][y];
            clf[z][y] = Ex[z][y][x] - ex_after + ey_after - Ey[z][y][x];
            tmp[z][y] = cymh[y] / cyph[y] * Bza[z][y][x] - ch / cyph[y] * clf[z][y];
            Hz[z][y][x] = cxmh[x] / cxph[x] * Hz[z][y][x] + mui * czp[z] / cxph[x] * tmp[z][y] - mui * czm[z] / cxph[x] * Bza[z][y][x];
            Bza[z][y][x] = tmp[z][y];
          }
  });
  run.add(Bza.cells, n * n * n);
  run.add(Hz.cells, n * n * n);
}

/// jacobi-1d: B[i] = (A[i-1] + A[i] + A[i+1]) / 3, then A = B.
void jacobi_1d(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  VECTOR(A, n);
  VECTOR(B, n);
  run.repeat([=] { fill(A, n, 2); },
             [=] {
               for (Index step = 0; step < steps; ++step) {
                 for (Index i = 1; i + 1 < n; ++i) B[i] = (A[i - 1] + A[i] + A[i + 1]) * (1.0 / 3);
                 for (Index i = 1; i + 1 < n; ++i) A[i] = B[i];
               }
             });
  run.add(A, n);
}

/// jacobi-2d: B[i][j] is the mean of A[i][j] and its four neighbours, then A = B.
void jacobi_2d(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  MATRIX(A, n, n);
  MATRIX(B, n, n);
  run.repeat([=] { fill(A, n, 2); },
             [=] {
               for (Index step = 0; step < steps; ++step) {
                 for (Index i = 1; i + 1 < n; ++i)
                   for (Index j = 1; j + 1 < n; ++j)
                     B[i][j] = 0.2 * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
                 for (Index i = 1; i + 1 < n; ++i)
                   for (Index j = 1; j + 1 < n; ++j) A[i][j] = B[i][j];
               }
             });
  run.add(A.cells, n * n);
}

/// seidel-2d: A[i][j] becomes the mean of itself and its eight neighbours, in place, so each waits for the one before.
void seidel_2d(Run& run) {
  const Index n = run.sizes.n, steps = run.sizes.steps;
  MATRIX(A, n, n);
  run.repeat([=] { fill(A, n, 2); },
             [=] {
               for (Index step = 0; step < steps; ++step)
                 for (Index i = 1; i + 1 < n; ++i)
                   for (Index j = 1; j + 1 < n; ++j)
                     A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1] +
                                A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9;
             });
  run.add(A.cells, n * n);
}

}  // namespace polybench
