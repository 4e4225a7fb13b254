// Places are known with debugging information and without, and no debugging information is added without -g.
// RUN: %cc -O2 %s | FileCheck %s
// RUN: %cc -O2 -g %s | FileCheck %s
// RUN: %cc -O2 %s | FileCheck %s --check-prefix=PLAIN
#include <stdlib.h>

// CHECK: c"places.c\00"
// CHECK: c"place\00"
// PLAIN: emissionKind: NoDebug
void *place(size_t n) { return malloc(n); }
