// OpenMP without threads: clang has no <omp.h> where its OpenMP library is not installed, and one thread is
// what the section `profile-build` measures.
#ifndef ISOTHERM_BENCH_SERIAL_OMP_H
#define ISOTHERM_BENCH_SERIAL_OMP_H

enum omp_sched_t { omp_sched_static = 1, omp_sched_dynamic, omp_sched_guided };

inline int omp_get_num_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
inline void omp_set_num_threads(int) {}
inline void omp_set_schedule(omp_sched_t, int) {}

#endif
