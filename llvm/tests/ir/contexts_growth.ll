; Copies within a growth limit: a single certain caller needs none, and the last copy replaces the original.
; 12 instructions before; a copy of @d takes two, so 34 % hold two copies and half as many again hold all three.
; RUN: env ISOTHERM_CONTEXT=clone ISOTHERM_GROWTH=34%% ISOTHERM_REPORT=%t %contexts %s | FileCheck %s --check-prefix=TWO
; RUN: FileCheck %s --check-prefix=REPORT < %t
; RUN: env ISOTHERM_CONTEXT=clone ISOTHERM_GROWTH=50%% ISOTHERM_REPORT=%t %contexts %s | FileCheck %s --check-prefix=THREE
; RUN: FileCheck %s --check-prefix=ALL < %t
target triple = "x86_64-pc-linux-gnu"
declare ptr @malloc(i64)

; REPORT: contexts 2
; REPORT-NEXT: contexts left out 1
; REPORT-NEXT: copies 2
; REPORT-NEXT: instructions before 12
; REPORT-NEXT: instructions after 16
; REPORT: 1 of them not distinguished: the growth is used up
; ALL: contexts 3
; ALL-NEXT: contexts left out 0
; ALL-NEXT: copies 3
; ALL-NEXT: instructions before 12
; ALL-NEXT: instructions after 16
; ALL-NOT: not distinguished

; TWO: define internal ptr @d()
; THREE-NOT: define internal ptr @d()
define internal ptr @d() {
  %p = call ptr @malloc(i64 8)
  ret ptr %p
}

; TWO: define internal ptr @a()
; TWO: call ptr @d()
; THREE: define internal ptr @a()
; THREE: call ptr @d.isotherm
define internal ptr @a() {
  %p = call ptr @d()
  ret ptr %p
}
; TWO: define internal ptr @b()
; TWO: call ptr @d.isotherm
; THREE: define internal ptr @b()
; THREE: call ptr @d.isotherm
define internal ptr @b() {
  %p = call ptr @d()
  ret ptr %p
}
; TWO: define internal ptr @c()
; TWO: call ptr @d.isotherm
; THREE: define internal ptr @c()
; THREE: call ptr @d.isotherm
define internal ptr @c() {
  %p = call ptr @d()
  ret ptr %p
}
define void @main() {
  %a = call ptr @a()
  %b = call ptr @b()
  %c = call ptr @c()
  ret void
}
