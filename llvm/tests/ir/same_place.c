// Two calls of one line and column (a macro) are two sites; the first keeps its name whether or
// not there is a second.
// RUN: %cc -O0 %s | FileCheck %s
#include <stdlib.h>
#define PAIR(n) (a = malloc(n), b = malloc(n))

// CHECK: isotherm_sites
// CHECK-LABEL: define {{.*}}@pair(
void *pair(size_t n) {
    void *a, *b;
    // CHECK: call {{.*}}(i64 {{.*}}, ptr @isotherm_site.[[FIRST:[0-9a-f]+]])
    // CHECK-NOT: @isotherm_site.[[FIRST]]
    // CHECK: call {{.*}}(i64 {{.*}}, ptr @isotherm_site.{{[0-9a-f]+}})
    PAIR(n);
    return a ? a : b;
}
