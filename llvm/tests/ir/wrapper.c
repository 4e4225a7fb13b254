// A named wrapper gets a twin that allocates with the site of its caller; recursion and wrappers
// of wrappers pass the site on. The function itself stays.
// RUN: %cc -O0 --isotherm-find-wrappers=no --isotherm-wrapper=xmalloc,outer %s | FileCheck %s
// RUN: %cc -g -O0 --isotherm-find-wrappers=no --isotherm-wrapper=xmalloc,outer %s | FileCheck %s
// RUN: %cc -O0 --isotherm-find-wrappers=no %s | FileCheck %s --check-prefix=WITHOUT --implicit-check-not=isotherm_wrapper
#include <stdlib.h>

void *xmalloc(size_t n) {
    void *block = malloc(n);
    return block ? block : xmalloc(n);
}

static void *outer(size_t n) { return xmalloc(n + 1); }

void *strange(const char *, ...);

// CHECK-LABEL: define {{.*}}@xmalloc(
// CHECK: call noalias ptr %{{.*}}(i64 {{.*}}, ptr @isotherm_site.
// CHECK: call ptr @isotherm_wrapper.xmalloc(i64 {{.*}}, ptr @isotherm_site.

// CHECK-LABEL: define {{.*}}@use(
// WITHOUT-LABEL: define {{.*}}@use(
void *use(void) {
    // CHECK: call ptr @isotherm_wrapper.outer(i64 noundef 10, ptr @isotherm_site.[[FIRST:[0-9a-f]+]])
    // WITHOUT: call ptr @outer(i64 noundef 10)
    void *a = outer(10);
    // CHECK-NOT: @isotherm_site.[[FIRST]]
    // CHECK: call ptr @isotherm_wrapper.outer(i64 noundef 10, ptr @isotherm_site.{{[0-9a-f]+}})
    return a ? outer(10) : a;
}

// CHECK-DAG: define dso_local {{.*}}@isotherm_wrapper.xmalloc(i64 {{.*}}, ptr [[SITE:%.*]])
// CHECK: call {{.*}}@isotherm_malloc(i64 {{.*}}, ptr
// CHECK: call ptr @isotherm_wrapper.xmalloc(i64 {{.*}}, ptr
// CHECK: define internal {{.*}}@isotherm_wrapper.outer(
// CHECK: call ptr @isotherm_wrapper.xmalloc(
