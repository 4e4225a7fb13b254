// Calls of another file's function that declares its allocation go to its twin where the linker finds one.
// RUN: %cc -O1 %s | FileCheck %s
// RUN: %cc -O1 --isotherm-find-wrappers=no %s | FileCheck %s --check-prefix=OFF --implicit-check-not=isotherm_
// RUN: %cc -O1 --isotherm-wrapper=xmalloc %s | FileCheck %s --check-prefix=NAMED
#include <stddef.h>

__attribute__((alloc_size(1))) void *xmalloc(size_t n);
void *unsaid(size_t n);

void *use(size_t n) {
    // CHECK-LABEL: define {{.*}}@use(
    // CHECK: [[ABSENT:%.*]] = icmp eq ptr @isotherm_wrapper.xmalloc, null
    // CHECK: [[WHICH:%.*]] = select i1 [[ABSENT]], ptr @xmalloc, ptr @isotherm_wrapper.xmalloc
    // CHECK: call ptr [[WHICH]](i64 noundef %{{.*}}, ptr {{.*}}@isotherm_site.
    // OFF: call ptr @xmalloc(
    // NAMED: call ptr @isotherm_wrapper.xmalloc(i64 noundef %{{.*}}, ptr {{.*}}@isotherm_site.
    return xmalloc(n);
}

void *other(size_t n) {
    // CHECK-LABEL: define {{.*}}@other(
    // CHECK: call ptr @unsaid(
    return unsaid(n);
}

// CHECK: declare extern_weak {{.*}}@isotherm_wrapper.xmalloc(i64{{.*}}, ptr{{.*}})
