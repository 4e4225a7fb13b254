; The example of MemBrain's figure 3: one allocation on three paths of two calls becomes
; three, by a copy for each path or by an argument. n = 1 leaves it as it is.
; RUN: env ISOTHERM_CONTEXT=clone ISOTHERM_DEPTH=2 ISOTHERM_GROWTH=900%% %contexts %s | FileCheck %s --check-prefix=CLONE
; RUN: env ISOTHERM_CONTEXT=argument ISOTHERM_DEPTH=2 %contexts %s | FileCheck %s --check-prefix=ARGUMENT
; RUN: env ISOTHERM_CONTEXT=argument ISOTHERM_DEPTH=1 %contexts %s | FileCheck %s --check-prefix=SITE
; RUN: env ISOTHERM_CONTEXT=none %contexts %s | FileCheck %s --check-prefix=SITE
; RUN: env ISOTHERM_CONTEXT=clone ISOTHERM_DEPTH=2 ISOTHERM_GROWTH=0%% %contexts %s | FileCheck %s --check-prefix=SMALL
; RUN: env ISOTHERM_CONTEXT=argument ISOTHERM_DEPTH=9 not %contexts %s 2>&1 | FileCheck %s --check-prefix=DEEP
; RUN: env ISOTHERM_CONTEXT=what not %contexts %s 2>&1 | FileCheck %s --check-prefix=WAY
target triple = "x86_64-pc-linux-gnu"
declare ptr @malloc(i64)

; CLONE: @isotherm_context_records = internal global [4 x [8 x i64]] zeroinitializer, align 64
; CLONE: @isotherm_contexts_1 = hidden constant {{.*}}, section "isotherm_contexts"
; ARGUMENT: @isotherm_context_records = internal global [4 x [8 x i64]] zeroinitializer, align 64
; SITE-NOT: isotherm_context
; DEEP: the depth of contexts is "9"; it is a number from 1 to 7
; WAY: there are argument, clone and none

; CLONE-NOT: define internal ptr @d()
; ARGUMENT-NOT: define internal ptr @d()
define internal ptr @d() {
  %p = call ptr @malloc(i64 8)
  ret ptr %p
}

; CLONE-LABEL: define ptr @a()
; CLONE: call ptr @d.isotherm{{[.0-9]*}}()
; ARGUMENT-LABEL: define ptr @a()
; ARGUMENT: call ptr @d.isotherm(i64 3)
; SITE-LABEL: define ptr @a()
; SITE: call ptr @d()
; SMALL-LABEL: define ptr @a()
; SMALL: call ptr @d()
define ptr @a() {
  %p = call ptr @d()
  ret ptr %p
}
; ARGUMENT: call ptr @d.isotherm(i64 2)
define ptr @b() {
  %p = call ptr @d()
  ret ptr %p
}
; ARGUMENT: call ptr @d.isotherm(i64 1)
define ptr @c() {
  %p = call ptr @d()
  ret ptr %p
}

; ARGUMENT: define internal ptr @d.isotherm(i64 %isotherm_context)
; ARGUMENT: and i64
; ARGUMENT: call ptr @isotherm_malloc(i64 8, ptr %

; CLONE: define internal ptr @d.isotherm
; CLONE: @isotherm_malloc(i64 8, ptr getelementptr inbounds ({{.*}}@isotherm_context_records, i64 0, i64 1))
; CLONE: define internal ptr @d.isotherm
; CLONE: @isotherm_malloc(i64 8, ptr getelementptr inbounds ({{.*}}@isotherm_context_records, i64 0, i64 2))
; CLONE: define internal ptr @d.isotherm
; CLONE: @isotherm_malloc(i64 8, ptr getelementptr inbounds ({{.*}}@isotherm_context_records, i64 0, i64 3))
; CLONE-NOT: define internal ptr @d.isotherm
