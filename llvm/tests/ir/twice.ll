; Run twice, the pass changes nothing the second time.
; RUN: opt -load-pass-plugin=%pass -passes=isotherm-sites,isotherm-sites -S -o - %s | FileCheck %s
target triple = "x86_64-pc-linux-gnu"
declare ptr @malloc(i64)

; CHECK: @isotherm_site.
; CHECK-NOT: @isotherm_site.{{.*}} = linkonce_odr
; CHECK: call ptr @isotherm_malloc(i64 8, ptr @isotherm_site.
define ptr @f() {
  %p = call ptr @malloc(i64 8)
  ret ptr %p
}
