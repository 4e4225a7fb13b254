; A wrapper that ends in a call which must not need stack: one that is named gets a twin, in which
; the call is an ordinary one; by itself it is not found.
; RUN: %opt -isotherm-wrapper=named %s | FileCheck %s --implicit-check-not=isotherm_wrapper.unnamed
target triple = "x86_64-pc-linux-gnu"

declare ptr @malloc(i64)

; CHECK-LABEL: define ptr @named(
; CHECK: musttail call ptr @malloc(
define ptr @named(i64 %n) {
  %p = musttail call ptr @malloc(i64 %n)
  ret ptr %p
}

define ptr @unnamed(i64 %n) {
  %p = musttail call ptr @malloc(i64 %n)
  ret ptr %p
}

; CHECK: define ptr @isotherm_wrapper.named(i64 %n, ptr [[SITE:%.*]])
; CHECK: tail call ptr @isotherm_malloc(i64 %n, ptr [[SITE]])
