// Where the call lies in a system header, its place says nothing of the program: it is left to
// the runtime, which tells the callers apart.
// RUN: %cxx -O0 %s | FileCheck %s
#include <vector>

// CHECK-NOT: @isotherm_new
// CHECK: call {{.*}}@_Znwm(
// CHECK-NOT: @isotherm_new
int *first(std::vector<int> &v) { v.push_back(1); return v.data(); }
