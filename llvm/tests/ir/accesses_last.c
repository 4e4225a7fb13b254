// The countdown is inserted last: the loop is vectorised as without it, and has one countdown for all accesses of its
// body. An object without the option has none.
// RUN: %cc -O2 --profile %s | FileCheck %s
// RUN: %cc -O2 --profile %s | opt -load-pass-plugin=%pass -passes=isotherm-accesses -S | FileCheck %s --check-prefix=ONCE
// RUN: %cc -O2 %s | FileCheck %s --check-prefix=PLAIN --implicit-check-not=isotherm_sample

// CHECK-LABEL: define {{.*}}void @add(
// CHECK: load <4 x float>
// CHECK: store <4 x float>
// CHECK: sub i64 {{.*}}, [[ACCESSES:[0-9]+]]
// CHECK: call preserve_mostcc void @isotherm_sample_2(ptr {{.*}}, i64 [[ACCESSES]])
// ONCE-LABEL: define {{.*}}void @one(
// ONCE-COUNT-1: @isotherm_sample_2(
// ONCE-NOT: @isotherm_sample_2(
// ONCE: ret void
// PLAIN: load <4 x float>
void add(float *restrict to, const float *restrict from, int count) {
    for (int i = 0; i < count; i++)
        to[i] += from[i];
}

void one(int *p) { *p = 1; }
