// Every form of operator new, calls and invokes; operator delete is called through a pointer, or stays as it is.
// RUN: %cxx -O0 -std=c++17 %s | FileCheck %s
#include <new>

struct Plain { int x; };
struct alignas(64) Wide { int x; };
struct Throwing { Throwing(); ~Throwing(); };

// CHECK-LABEL: define {{.*}}@_Z5formsm(
void forms(unsigned long n) {
    // CHECK: call noalias noundef nonnull ptr @isotherm_new(i64 noundef 4, ptr @isotherm_site.
    auto *a = new Plain;
    // CHECK: @isotherm_new_array(i64 noundef {{.*}}, ptr @isotherm_site.
    auto *b = new Plain[n];
    // CHECK: @isotherm_new_aligned(i64 noundef 64, i64 noundef 64, ptr @isotherm_site.
    auto *c = new Wide;
    // CHECK: @isotherm_new_array_aligned(i64 noundef {{.*}}, i64 noundef 64, ptr @isotherm_site.
    auto *d = new Wide[n];
    // CHECK: call noalias noundef ptr @isotherm_new_nothrow(i64 noundef 4, ptr @isotherm_site.
    auto *e = new (std::nothrow) Plain;
    // CHECK: @isotherm_new_array_nothrow(i64 noundef {{.*}}, ptr @isotherm_site.
    auto *f = new (std::nothrow) Plain[n];
    // CHECK: @isotherm_new_aligned_nothrow(i64 noundef 64, i64 noundef 64, ptr @isotherm_site.
    auto *g = new (std::nothrow) Wide;
    // CHECK: @isotherm_new_array_aligned_nothrow(i64 noundef {{.*}}, i64 noundef 64, ptr @isotherm_site.
    auto *h = new (std::nothrow) Wide[n];
    // CHECK: load atomic ptr, ptr @isotherm_delete_sized_1__
    delete a;
    // CHECK: load atomic ptr, ptr @isotherm_delete_array_1__
    delete[] b;
    // CHECK: call void @_ZdlPvmSt11align_val_t(
    delete c;
    delete[] d, delete e, delete[] f, delete g, delete[] h;
}

// CHECK-LABEL: define {{.*}}@_Z7invokedv(
void *invoked() {
    Throwing guard;
    // CHECK: invoke noalias noundef nonnull ptr @isotherm_new(i64 noundef 1, ptr @isotherm_site.{{.*}})
    // CHECK-NEXT: to label %{{.*}} unwind label
    return new Throwing;
}

// CHECK-LABEL: define {{.*}}@_Z8explicitm(
void *explicit_call(unsigned long) asm("_Z8explicitm");
void *explicit_call(unsigned long n) {
    // CHECK: call noalias noundef nonnull ptr @isotherm_new(i64 noundef %{{.*}}, ptr @isotherm_site.
    return ::operator new(n);
}
