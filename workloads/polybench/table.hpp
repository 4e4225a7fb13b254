// The kernels by name, with the sizes that they have unless the command line says otherwise.
#pragma once

#include "kernels.hpp"

namespace polybench {

struct Kernel {
  const char* name;
  void (*run)(Run& run);
  int dimensions;  // of its largest object
  Sizes sizes;     // n, m, steps, repeat; 0 where it has no such size
  double check;    // the checksum at the sizes of `--check`, by tests/workloads/polybench_equations.py
};

constexpr Kernel kKernels[] = {
    {"gemm", gemm, 2, {2900, 32, 0, 1}, 1.643335125000e+05},
    {"2mm", two_products, 2, {2900, 16, 0, 1}, 1.508255793750e+06},
    {"3mm", three_products, 2, {2900, 16, 0, 1}, 1.013178163875e+07},
    {"symm", symm, 2, {20000, 256, 0, 1}, 1.836025875000e+05},
    {"syrk", syrk, 2, {450, 11700, 0, 1}, 1.504524020833e+05},
    {"syr2k", syr2k, 2, {360, 7300, 0, 1}, 2.983035541667e+05},
    {"trmm", trmm, 2, {30000, 256, 0, 1}, 1.030743156250e+05},
    {"doitgen", doitgen, 3, {220, 160, 0, 1}, 2.407062631944e+06},
    {"atax", atax, 2, {4500, 0, 0, 30}, 8.844350000000e+03},
    {"bicg", bicg, 2, {4500, 0, 0, 40}, 1.870600000000e+03},
    {"mvt", mvt, 2, {4500, 0, 0, 8}, 2.103300000000e+03},
    {"gemver", gemver, 2, {4500, 0, 0, 6}, 7.553998425000e+04},
    {"gesummv", gesummv, 2, {3300, 0, 0, 90}, 2.545590000000e+03},
    {"cholesky", cholesky, 2, {2100, 0, 0, 1}, 2.402321329290e+04},
    {"durbin", durbin, 2, {2900, 0, 0, 15}, -1.931331412657e+00},
    {"gramschmidt", gramschmidt, 2, {60, 70000, 0, 1}, 2.021707402972e+03},
    {"lu", lu, 2, {2100, 0, 0, 1}, 2.314208755258e+04},
    {"ludcmp", ludcmp, 2, {2100, 0, 0, 1}, 4.497571381093e+00},
    {"trisolv", trisolv, 2, {4500, 0, 0, 80}, 4.890459059018e+00},
    {"correlation", correlation, 2, {330, 16000, 0, 1}, 3.541688902638e+03},
    {"covariance", covariance, 2, {330, 16000, 0, 1}, 3.108586956522e+02},
    {"dynprog", dynprog, 3, {400, 0, 60, 1}, 5.707034898000e+10},
    {"floyd-warshall", floyd_warshall, 2, {2100, 0, 0, 1}, 3.555000000000e+04},
    {"reg_detect", reg_detect, 3, {250, 500, 50, 1}, 1.394131200000e+07},
    {"adi", adi, 2, {2500, 0, 15, 1}, 7.856270529048e+03},
    {"fdtd-2d", fdtd_2d, 2, {2800, 0, 40, 1}, 2.572402962500e+04},
    {"fdtd-apml", fdtd_apml, 3, {160, 0, 30, 1}, 3.138975546082e+04},
    {"jacobi-1d", jacobi_1d, 1, {12000000, 0, 40, 1}, 1.115555555556e+02},
    {"jacobi-2d", jacobi_2d, 2, {3400, 0, 40, 1}, 8.637650000000e+03},
    {"seidel-2d", seidel_2d, 2, {4000, 0, 12, 1}, 8.187201352697e+03},
};

}  // namespace polybench
