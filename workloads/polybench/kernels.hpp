// The thirty kernels. Each allocates its objects, fills them, computes, and adds its result to the checksum.
#pragma once

#include "run.hpp"

namespace polybench {

// products.cpp: products of matrices.
void gemm(Run& run);
void two_products(Run& run);
void three_products(Run& run);
void symm(Run& run);
void syrk(Run& run);
void syr2k(Run& run);
void trmm(Run& run);
void doitgen(Run& run);

// vectors.cpp: products of matrices and vectors.
void atax(Run& run);
void bicg(Run& run);
void mvt(Run& run);
void gemver(Run& run);
void gesummv(Run& run);

// solvers.cpp: factors of matrices, and systems of equations.
void cholesky(Run& run);
void durbin(Run& run);
void gramschmidt(Run& run);
void lu(Run& run);
void ludcmp(Run& run);
void trisolv(Run& run);

// statistics.cpp: matrices of correlations.
void correlation(Run& run);
void covariance(Run& run);

// paths.cpp: recurrences over tables.
void dynprog(Run& run);
void floyd_warshall(Run& run);
void reg_detect(Run& run);

// stencils.cpp: time steps on grids.
void adi(Run& run);
void fdtd_2d(Run& run);
void fdtd_apml(Run& run);
void jacobi_1d(Run& run);
void jacobi_2d(Run& run);
void seidel_2d(Run& run);

}  // namespace polybench
