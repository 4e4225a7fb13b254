; The kind of call decides whether a context is passed: by name, with exceptions, with variable
; arguments, through a pointer that few functions fit; and calls that must stay unchanged.
; RUN: env ISOTHERM_CONTEXT=argument ISOTHERM_DEPTH=3 ISOTHERM_REPORT=%t %contexts %s | FileCheck %s
; RUN: FileCheck %s --check-prefix=REPORT < %t
; RUN: env ISOTHERM_CONTEXT=clone ISOTHERM_DEPTH=3 ISOTHERM_GROWTH=900%% %contexts %s
target triple = "x86_64-pc-linux-gnu"
declare ptr @malloc(i64)
declare i32 @__gxx_personality_v0(...)
@pointer = global ptr @pointed

; It goes on being called through the pointer, and has a copy for calls by name.
; CHECK-LABEL: define internal ptr @pointed(i64 %n)
; CHECK: call ptr @isotherm_malloc(i64 8, ptr {{.*}}@isotherm_context_records
define internal ptr @pointed(i64 %n) {
  %p = call ptr @malloc(i64 8)
  ret ptr %p
}

; CHECK-LABEL: define ptr @by_pointer(
; CHECK: icmp eq ptr %f, @pointed
; CHECK-DAG: call ptr @pointed.isotherm(i64 1, i64 {{[0-9]+}})
; CHECK-DAG: call ptr %f(i64 1)
define ptr @by_pointer() {
  %f = load ptr, ptr @pointer
  %p = call ptr %f(i64 1)
  ret ptr %p
}

; CHECK-LABEL: define ptr @with_exceptions(
; CHECK: invoke ptr @pointed.isotherm(i64 2, i64 {{[0-9]+}})
; CHECK-NEXT: to label %ok unwind label %bad
define ptr @with_exceptions() personality ptr @__gxx_personality_v0 {
  %p = invoke ptr @pointed(i64 2) to label %ok unwind label %bad
ok:
  ret ptr %p
bad:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
}

define internal ptr @variable(i64 %n, ...) {
  %p = call ptr @malloc(i64 %n)
  ret ptr %p
}
; CHECK-LABEL: define ptr @with_more(
; CHECK: call ptr (i64, i64, ...) @variable.isotherm(i64 3, i64 {{[0-9]+}}, i32 4, ptr null)
define ptr @with_more() {
  %p = call ptr (i64, ...) @variable(i64 3, i32 4, ptr null)
  ret ptr %p
}

; A call in the place of the return takes the arguments of its function and no others.
; CHECK-LABEL: define ptr @must_tail(i64 %n)
; CHECK: musttail call ptr @pointed(i64 %n)
define ptr @must_tail(i64 %n) {
  %p = musttail call ptr @pointed(i64 %n)
  ret ptr %p
}

; Has a copy, which calls the callee of its original: that moves for both.
; CHECK-LABEL: define internal ptr @direct(i32 %n)
; CHECK: call ptr @labels.isotherm(i64 1, i64 {{[0-9]+}})
@other_pointer = global ptr @direct
define internal ptr @direct(i32 %n) {
  %p = call ptr @malloc(i64 8)
  %q = call ptr @labels(i64 1)
  ret ptr %q
}
; CHECK-LABEL: define ptr @asks_direct(
; CHECK: call ptr @direct.isotherm(i32 2, i64 {{[0-9]+}})
define ptr @asks_direct() {
  %p = call ptr @direct(i32 2)
  ret ptr %p
}

; Its code moves as a whole, and the addresses of its labels with it.
define internal ptr @labels(i64 %n) {
  %place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %n
  %to = load ptr, ptr %place
  indirectbr ptr %to, [label %one, label %two]
one:
  %p = call ptr @malloc(i64 1)
  ret ptr %p
two:
  ret ptr null
}
@table = internal constant [2 x ptr] [ptr blockaddress(@labels, %one), ptr blockaddress(@labels, %two)]
; CHECK-LABEL: define ptr @goes_on(
; CHECK: call ptr @labels.isotherm(i64 0, i64 {{[0-9]+}})
define ptr @goes_on() {
  %p = call ptr @labels(i64 0)
  ret ptr %p
}

; Two sites that became one call: each stays unchanged (`@merged.isotherm` below; moved code is at the end).
define internal ptr @merged(i1 %c) {
  br i1 %c, label %left, label %right
left:
  br label %both
right:
  br label %both
both:
  %site = phi ptr [ @isotherm_site.00000000000000aa, %left ], [ @isotherm_site.00000000000000bb, %right ]
  %p = call ptr @isotherm_malloc(i64 5, ptr %site)
  ret ptr %p
}
declare ptr @isotherm_malloc(i64, ptr)
%isotherm_site = type { i64, ptr, ptr, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32 }
@isotherm_site.00000000000000aa = internal global %isotherm_site { i64 170, ptr null, ptr null, i32 0, i32 1, i32 0, i32 0, i32 7, i32 0, i32 0, i32 0, i32 0, i32 0 }, section "isotherm_sites", align 64
@isotherm_site.00000000000000bb = internal global %isotherm_site { i64 187, ptr null, ptr null, i32 0, i32 1, i32 0, i32 0, i32 8, i32 0, i32 0, i32 0, i32 0, i32 0 }, section "isotherm_sites", align 64
define ptr @asks(i1 %c) {
  %p = call ptr @merged(i1 %c)
  ret ptr %p
}

; Recursion is counted up to the depth.
define internal ptr @again(i64 %n) {
  %p = call ptr @malloc(i64 8)
  %m = sub i64 %n, 1
  %q = call ptr @again(i64 %m)
  ret ptr %q
}
define ptr @begin(i64 %n) {
  %p = call ptr @again(i64 %n)
  ret ptr %p
}

; CHECK-LABEL: define ptr @begin(
; CHECK-LABEL: define internal ptr @merged.isotherm(
; CHECK: phi ptr [ %{{[0-9]+}}, %left ], [ %{{[0-9]+}}, %right ]
; CHECK: define internal ptr @again.isotherm(i64 %n, i64 %isotherm_context)
; CHECK: shl i64 %isotherm_context, 32
; CHECK: call ptr @again.isotherm(i64 %{{.*}}, i64 %

; REPORT: contexts of 3 calls, as an argument
; REPORT: growth
; REPORT: stops at pointed: it is called through pointers
; REPORT: stops at with_more: it can be called from outside of the program
