// The forms of operator delete that programs call most have their own pointers; the others stay.
// RUN: %cxx -O1 %s | FileCheck %s
#include <new>

struct Thing { int number; };

// CHECK-LABEL: define {{.*}}@_Z3one
// CHECK: load atomic ptr, ptr @isotherm_delete_sized_1__
void one(Thing *thing) { delete thing; }

// CHECK-LABEL: define {{.*}}@_Z4many
// CHECK: load atomic ptr, ptr @isotherm_delete_array_1__
void many(Thing *things) { delete[] things; }

// CHECK-LABEL: define {{.*}}@_Z4bare
// CHECK: load atomic ptr, ptr @isotherm_delete_1__
void bare(void *block) { operator delete(block); }

// CHECK-LABEL: define {{.*}}@_Z7aligned
// CHECK: call void @_ZdlPvSt11align_val_t(
void aligned(void *block) { operator delete(block, std::align_val_t(64)); }
