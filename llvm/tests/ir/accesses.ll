; The code that the profile build inserts: for the accesses of a block between two calls one countdown, behind the last of them.
; RUN: opt -load-pass-plugin=%pass -passes=isotherm-accesses -S %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"

@own = internal thread_local global i64 0
@resolved = ifunc i64 (), ptr @resolver

declare void @may_not_return()
declare double @returns(double) nounwind willreturn memory(none)
declare void @takes(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
declare <2 x i64> @llvm.masked.gather.v2i64.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x i64>)
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)

; CHECK: @isotherm_countdown_2 = external hidden thread_local(initialexec) global i64

; CHECK-LABEL: define i64 @two(
define i64 @two(ptr %p, ptr %q) {
  ; CHECK-NEXT: [[ADDRESSES:%.*]] = alloca [2 x ptr]
  ; CHECK-NEXT: load i64, ptr %p
  ; CHECK-NEXT: store volatile i64 1, ptr %q
  ; CHECK-NEXT: [[PLACE:%.*]] = call {{.*}}ptr @llvm.threadlocal.address.p0(ptr @isotherm_countdown_2)
  ; CHECK-NEXT: [[BEFORE:%.*]] = load i64, ptr [[PLACE]]
  ; CHECK-NEXT: [[AFTER:%.*]] = sub i64 [[BEFORE]], 2
  ; CHECK-NEXT: store i64 [[AFTER]], ptr [[PLACE]]
  ; CHECK-NEXT: [[DUE:%.*]] = icmp slt i64 [[AFTER]], 0
  ; CHECK-NEXT: br i1 [[DUE]], label %[[RARE:.*]], label %[[ON:.*]], !prof [[UNLIKELY:![0-9]+]]
  ; CHECK: [[RARE]]:
  ; CHECK-NEXT: [[FIRST:%.*]] = getelementptr inbounds ptr, ptr [[ADDRESSES]], i32 0
  ; CHECK-NEXT: store ptr %p, ptr [[FIRST]]
  ; CHECK-NEXT: [[SECOND:%.*]] = getelementptr inbounds ptr, ptr [[ADDRESSES]], i32 1
  ; CHECK-NEXT: store ptr %q, ptr [[SECOND]]
  ; CHECK-NEXT: call preserve_mostcc void @isotherm_sample_2(ptr [[ADDRESSES]], i64 2)
  ; CHECK-NEXT: br label %[[ON]]
  ; CHECK: [[ON]]:
  ; CHECK-NEXT: ret i64
  %value = load i64, ptr %p
  store volatile i64 1, ptr %q
  ret i64 %value
}

; Accesses before a call that may not return are counted before it; other calls do not matter.
; CHECK-LABEL: define double @calls(
define double @calls(ptr %p) {
  ; CHECK: sub i64 {{.*}}, 1
  ; CHECK: call void @may_not_return()
  ; CHECK: load double
  ; CHECK-NEXT: call double @returns
  ; CHECK-NEXT: store double
  ; CHECK: sub i64 {{.*}}, 2
  ; CHECK: ret double
  store i32 0, ptr %p
  call void @may_not_return()
  %x = load double, ptr %p
  %y = call double @returns(double %x)
  store double %y, ptr %p
  ret double %y
}

; CHECK-LABEL: define void @atomics(
define void @atomics(ptr %p) {
  ; CHECK: atomicrmw
  ; CHECK-NEXT: cmpxchg
  ; CHECK-NEXT: load atomic
  ; CHECK: sub i64 {{.*}}, 3
  %a = atomicrmw add ptr %p, i64 1 monotonic
  %b = cmpxchg ptr %p, i64 0, i64 1 seq_cst seq_cst
  %c = load atomic i64, ptr %p acquire, align 8
  ret void
}

; Variables of the function, arguments on its stack, and other kinds of memory are not counted.
; CHECK-LABEL: define void @own_variables(
define void @own_variables(ptr byval(i64) %argument, ptr addrspace(1) %other) {
  ; CHECK-NOT: isotherm
  ; CHECK: ret void
  %variable = alloca [2 x i64]
  %part = getelementptr i64, ptr %variable, i64 1
  store i64 1, ptr %part
  store i64 1, ptr %argument
  store i64 1, ptr addrspace(1) %other
  call void @takes(ptr %variable)
  %value = load i64, ptr %variable
  ret void
}

; An address that is computed in the block is computed again where it is rarely needed.
; CHECK-LABEL: define void @computed(
define void @computed(ptr %p, i64 %i) {
  ; CHECK: br i1
  ; CHECK: [[AGAIN:%.*]] = getelementptr i64, ptr %p, i64 %i
  ; CHECK: store ptr [[AGAIN]]
  ; CHECK: ret void
  %place = getelementptr i64, ptr %p, i64 %i
  store i64 1, ptr %place
  ret void
}

; Ranges count a line for an access; one that is known to be a line or less is one access of each side.
; CHECK-LABEL: define void @ranges(
define void @ranges(ptr %to, ptr %from, i64 %bytes, i32 %few) {
  ; CHECK: call void @isotherm_sample_range_2(ptr %from, i64 %bytes)
  ; CHECK-NEXT: call void @isotherm_sample_range_2(ptr %to, i64 %bytes)
  ; CHECK-NEXT: call void @llvm.memcpy
  ; CHECK-NEXT: [[LONG:%.*]] = zext i32 %few to i64
  ; CHECK-NEXT: call void @isotherm_sample_range_2(ptr %to, i64 [[LONG]])
  ; CHECK-NEXT: call void @llvm.memset
  ; CHECK-NEXT: call void @isotherm_sample_range_2(ptr %from, i64 65)
  ; CHECK-NEXT: call void @llvm.memcpy{{.*}}(ptr %variable, ptr %from, i64 65
  ; CHECK-NEXT: call void @llvm.memcpy{{.*}}, i64 64
  ; CHECK: sub i64 {{.*}}, 2
  ; CHECK: call void @llvm.memcpy{{.*}}, i64 0
  %variable = alloca [65 x i8]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i32(ptr %to, i8 0, i32 %few, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %variable, ptr %from, i64 65, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 0, i1 false)
  ret void
}

; Of several addresses only the accessed ones count.
; CHECK-LABEL: define <2 x i64> @lanes(
define <2 x i64> @lanes(<2 x ptr> %p, <2 x i1> %mask, ptr %q, <4 x i1> %other, <4 x i32> %values) {
  ; CHECK: sub i64 {{.*}}, 3
  ; CHECK: [[ADDRESS:%.*]] = extractelement <2 x ptr> %p, i64 1
  ; CHECK-NEXT: [[MADE:%.*]] = extractelement <2 x i1> %mask, i64 1
  ; CHECK-NEXT: [[TOLD:%.*]] = select i1 [[MADE]], ptr [[ADDRESS]], ptr null
  ; CHECK: store ptr [[TOLD]]
  ; CHECK: store ptr %q
  %loaded = call <2 x i64> @llvm.masked.gather.v2i64.v2p0(<2 x ptr> %p, i32 8, <2 x i1> %mask, <2 x i64> zeroinitializer)
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %values, ptr %q, i32 4, <4 x i1> %other)
  ret <2 x i64> %loaded
}

; CHECK-LABEL: define void @tail(
define void @tail(ptr %p) {
  ; CHECK: sub i64 {{.*}}, 1
  ; CHECK: musttail call void @takes(ptr %p)
  ; CHECK-NEXT: ret void
  store i64 1, ptr %p
  musttail call void @takes(ptr %p)
  ret void
}

; Code that may run too early, that is not in this module, that opted out, or that another
; instrumentation inserted.
; CHECK-LABEL: define ptr @resolver(
define ptr @resolver() {
  ; CHECK-NOT: isotherm
  ; CHECK-LABEL: define available_externally void @elsewhere(
  %value = load ptr, ptr @own
  ret ptr %value
}

define available_externally void @elsewhere(ptr %p) {
  ; CHECK-NOT: isotherm
  ; CHECK-LABEL: define void @asked(
  store i64 1, ptr %p
  ret void
}

define void @asked(ptr %p) disable_sanitizer_instrumentation {
  ; CHECK-NOT: isotherm
  ; CHECK-LABEL: define void @bare(
  store i64 1, ptr %p
  ret void
}

define void @bare(ptr %p) naked {
  ; CHECK-NOT: isotherm
  ; CHECK-LABEL: define void @marked(
  store i64 1, ptr %p
  ret void
}

define void @marked(ptr %p) {
  ; CHECK-NOT: isotherm
  ; CHECK: ret void
  store i64 1, ptr %p, !nosanitize !0
  ret void
}

!0 = !{}
; CHECK: [[UNLIKELY]] = !{!"branch_weights", i32 1, i32 {{[0-9]+}}}
