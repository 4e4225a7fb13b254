; Code that only looks like an allocation, or cannot be changed, stays.
; RUN: %opt %s | FileCheck %s --implicit-check-not=isotherm_
target triple = "x86_64-pc-linux-gnu"

declare ptr @calloc(i64)
declare ptr @realloc(ptr, i64)

; A function of the program that has the name of an allocator, and the functions that it calls.
define ptr @malloc(i64 %n) {
  %p = call ptr @realloc(ptr null, i64 %n)
  ret ptr %p
}

; CHECK-LABEL: define ptr @program(
define ptr @program(i64 %n, ptr %function) {
  ; CHECK: call ptr @malloc(i64 %n)
  %own = call ptr @malloc(i64 %n)
  ; CHECK: call ptr @calloc(i64 %n)
  %other_type = call ptr @calloc(i64 %n)
  ; CHECK: call ptr %function(i64 %n)
  %by_pointer = call ptr %function(i64 %n)
  ret ptr %own
}

; CHECK-LABEL: define ptr @must_tail(
define ptr @must_tail(ptr %p, i64 %n) {
  ; CHECK: musttail call ptr @realloc(
  %q = musttail call ptr @realloc(ptr %p, i64 %n)
  ret ptr %q
}
