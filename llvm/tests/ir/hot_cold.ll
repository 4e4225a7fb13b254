; LLVM's own operator new with a hint: the hint is left out, because the site decides.
; RUN: %opt %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"

declare ptr @_Znwm12__hot_cold_t(i64, i8)
declare ptr @_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t(i64, i64, ptr, i8)

; CHECK-LABEL: define ptr @hinted(
; CHECK: call ptr @isotherm_new(i64 8, ptr @isotherm_site.
; CHECK: call ptr @isotherm_new_array_aligned_nothrow(i64 8, i64 64, ptr @isotherm_site.
define ptr @hinted(ptr %tag) {
  %a = call ptr @_Znwm12__hot_cold_t(i64 8, i8 1)
  %b = call ptr @_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t(i64 8, i64 64, ptr %tag, i8 1)
  ret ptr %b
}
