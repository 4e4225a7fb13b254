// Functions that allocate the text they return are sites as well; the site goes first where
// more arguments may follow. Hardened programs call other functions.
// RUN: %cc -O0 %s | FileCheck %s
// RUN: %cc -O1 -D_FORTIFY_SOURCE=2 %s | FileCheck %s --check-prefix=HARD --implicit-check-not='@{{(__)?v?asprintf}}'
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

char *one(int n) {
    char *text;
    // CHECK-LABEL: define {{.*}}@one(
    // CHECK: call i32 (ptr, ptr, ptr, ...) @isotherm_asprintf(ptr @isotherm_site.{{[0-9a-f]+}}, ptr noundef %{{.*}}, ptr noundef @{{.*}}, i32 noundef %{{.*}}, double noundef 1.5
    // HARD-LABEL: define {{.*}}@one(
    // HARD: call i32 (ptr, ptr, i32, ptr, ...) @isotherm_asprintf_chk(ptr {{.*}}@isotherm_site.{{[0-9a-f]+}}, ptr {{.*}}, i32 noundef 1, ptr {{.*}}, i32 noundef %{{.*}}, double
    return asprintf(&text, "%d %f", n, 1.5) < 0 ? NULL : text;
}

char *list(const char *format, va_list arguments) {
    char *text;
    // CHECK-LABEL: define {{.*}}@list(
    // CHECK: call i32 @isotherm_vasprintf(ptr noundef %{{.*}}, ptr noundef %{{.*}}, ptr noundef %{{.*}}, ptr @isotherm_site.
    // HARD-LABEL: define {{.*}}@list(
    // HARD: call i32 @isotherm_vasprintf(ptr {{.*}}, ptr noundef %{{.*}}, ptr noundef %{{.*}}, ptr {{.*}}@isotherm_site.
    return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

wchar_t *wide(const wchar_t *text) {
    // CHECK-LABEL: define {{.*}}@wide(
    // CHECK: call noalias ptr @isotherm_wcsdup(ptr noundef %{{.*}}, ptr @isotherm_site.
    return wcsdup(text);
}
