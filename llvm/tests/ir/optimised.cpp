// The optimiser can still treat the call as the original function's: an allocation
// whose result is unused goes away, in C and for a new-expression; a call of the operator itself stays.
// RUN: %cxx -O2 %s | FileCheck %s
#include <cstdlib>
#include <new>

// CHECK-LABEL: define {{.*}}@_Z6unusedv(
// CHECK-NEXT: ret i32 3
int unused() {
    void *block = std::malloc(8);
    std::free(block);
    delete new int;
    return 3;
}

// CHECK-LABEL: define {{.*}}@_Z10direct_usev(
// CHECK: @isotherm_new(
int direct_use() {
    ::operator delete(::operator new(8));
    return 3;
}
