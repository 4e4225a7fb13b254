// Generated code calls the function that serves a site through the pointer in its record, and the one that frees through a pointer
// of the module; the optimiser still saw a call of `free`. A site that is not the call's own has no such pointer.
// RUN: %cc -O2 %s | FileCheck %s
// RUN: %cc -O0 %s | FileCheck %s --check-prefix=PLAIN
// RUN: %cc -O2 -flto --isotherm-context %s | FileCheck %s --check-prefix=LINK
#include <stdlib.h>

// CHECK-DAG: @isotherm_site.[[SITE:[0-9a-f]+]] = linkonce_odr hidden global {{.*}}ptr null, ptr @isotherm_malloc_at_first,
// CHECK-DAG: @isotherm_free_1__link_with_the_isotherm_cc_that_compiled_all_objects = external hidden {{.*}}global ptr

// CHECK-LABEL: define {{.*}}@own(
// CHECK: [[MALLOC:%.*]] = load atomic ptr, ptr getelementptr inbounds ({{.*}}@isotherm_site.[[SITE]], i{{.*}})
// CHECK: call {{.*}}ptr [[MALLOC]](i64 {{.*}}, ptr {{.*}}@isotherm_site.[[SITE]])
// PLAIN-LABEL: define {{.*}}@own(
// PLAIN-NOT: @isotherm_malloc(
// LINK-LABEL: define {{.*}}@own(
// LINK: @isotherm_malloc(i64
void *own(size_t n) { return malloc(n); }

// CHECK-LABEL: define {{.*}}@drop(
// CHECK: [[FREE:%.*]] = load atomic ptr, ptr @isotherm_free_1__
// CHECK-NEXT: tail call void [[FREE]](ptr
// PLAIN-LABEL: define {{.*}}@drop(
// PLAIN-NOT: call {{.*}}@free(
// LINK-LABEL: define {{.*}}@drop(
// LINK: call void @free(
void drop(void *block) { free(block); }

// CHECK-LABEL: define {{.*}}@zeroed(
// CHECK: @isotherm_calloc(
void *zeroed(size_t n) { return calloc(n, 8); }

// CHECK-LABEL: define {{.*}}@by_pointer(
// CHECK-NEXT: ret ptr @free
void (*by_pointer(void))(void *) { return free; }

