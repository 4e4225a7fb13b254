// A call in a system header identifies no place of the program: the functions of the header that lead
// to it are wrappers, and the program's call of them is the site.
// RUN: %cxx -O0 %s | FileCheck %s
// RUN: %cxx -O2 -g %s | FileCheck %s --check-prefix=OPTIMISED
// RUN: %cxx -O0 --isotherm-find-wrappers=no %s | FileCheck %s --check-prefix=LEFT --implicit-check-not=isotherm_new
// RUN: %cxx -O0 --isotherm-context %s | FileCheck %s --check-prefix=LEFT --implicit-check-not=isotherm_new
#include <vector>

// CHECK-LABEL: define {{.*}}@_Z5firstRSt6vectorIiSaIiEE(
// CHECK: call void @isotherm_wrapper._ZNSt6vectorIiSaIiEE9push_backE{{[RO]}}{{.*}}, ptr @isotherm_site.[[FIRST:[0-9a-f]+]])
// OPTIMISED-LABEL: define {{.*}}@_Z5firstRSt6vectorIiSaIiEE(
// OPTIMISED: @isotherm_new({{.*}}, ptr {{.*}}@isotherm_site.
// LEFT-LABEL: define {{.*}}@_Z5firstRSt6vectorIiSaIiEE(
// LEFT: call void @_ZNSt6vectorIiSaIiEE9push_backE
int *first(std::vector<int> &v) { v.push_back(1); return v.data(); }

// Another site, of the same twin.
// CHECK-LABEL: define {{.*}}@_Z6secondRSt6vectorIiSaIiEE(
// CHECK-NOT: [[FIRST]]
// CHECK: call void @isotherm_wrapper._ZNSt6vectorIiSaIiEE9push_backE{{[RO]}}{{.*}}, ptr @isotherm_site.
int *second(std::vector<int> &v) { v.push_back(2); return v.data(); }

// A function whose address is taken stays unchanged for calls through a pointer.
// CHECK-LABEL: define {{.*}}@_Z7pointerv(
// CHECK: _ZNSt6vectorIiSaIiEE7reserveEm
// CHECK-NOT: isotherm_wrapper
void (std::vector<int>::*pointer())(std::size_t) { return &std::vector<int>::reserve; }

// The twin passes the site on; the function itself is left to the runtime.
// CHECK-LABEL: define {{.*}}@_ZNSt6vectorIiSaIiEE7reserveEm(
// CHECK: call {{.*}}@_ZNSt12_Vector_baseIiSaIiEE11_M_allocateEm(
// CHECK: define linkonce_odr hidden {{.*}}@isotherm_wrapper.{{[^(]*}}new_allocator{{[^(]*}}({{.*}}, ptr [[SITE:%[0-9]+]])
// CHECK: call {{.*}}@isotherm_new(i64 {{.*}}, ptr [[SITE]])
// LEFT: call {{.*}}@_Znwm(
