// OpenMP without threads: clang has no <omp.h> where its OpenMP library is not installed, and one thread is
// what the section `profile-build` measures.
#ifndef ISOTHERM_BENCH_SERIAL_OMP_H
#define ISOTHERM_BENCH_SERIAL_OMP_H

inline void omp_set_num_threads(int) {}

#endif
