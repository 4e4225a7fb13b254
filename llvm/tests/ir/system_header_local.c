// A local function of a system header is a wrapper like others, and stays local: hidden as well, it would be invalid code.
// RUN: %cc -O0 %s | FileCheck %s
// RUN: %cc -O0 %s | opt -passes=verify -disable-output
#include <stdlib.h>
# 1 "/usr/include/allocates.h" 1 3
static inline void *allocate(size_t bytes) { return malloc(bytes); }
# 8 "system_header_local.c" 2

// CHECK-LABEL: define {{.*}}@caller(
// CHECK: call {{.*}}@isotherm_wrapper.allocate({{.*}}, ptr @isotherm_site.
void *caller(size_t bytes) { return allocate(bytes); }
// CHECK: define internal {{.*}}@isotherm_wrapper.allocate(
