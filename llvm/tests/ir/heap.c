// Every function of the C interface that allocates becomes the entry point of its name, with the
// site behind the arguments; malloc a pointer in the record of the site.
// RUN: %cc -O0 %s | FileCheck %s
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *all(void *block, size_t n, const char *text) {
    void *place;
    // CHECK-LABEL: define {{.*}}@all(
    // CHECK: call noalias ptr %{{.*}}(i64 noundef %{{.*}}, ptr @isotherm_site.{{[0-9a-f]+}})
    block = malloc(n);
    // CHECK: @isotherm_calloc(i64 noundef %{{.*}}, i64 noundef 3, ptr @isotherm_site.
    block = calloc(n, 3);
    // CHECK: @isotherm_realloc(ptr noundef %{{.*}}, i64 noundef %{{.*}}, ptr @isotherm_site.
    block = realloc(block, n);
    // CHECK: @isotherm_reallocarray(ptr noundef %{{.*}}, i64 noundef %{{.*}}, i64 noundef 3, ptr @isotherm_site.
    block = reallocarray(block, n, 3);
    // CHECK: @isotherm_memalign(i64 noundef 64, i64 noundef %{{.*}}, ptr @isotherm_site.
    block = memalign(64, n);
    // CHECK: @isotherm_aligned_alloc(i64 noundef 64, i64 noundef %{{.*}}, ptr @isotherm_site.
    block = aligned_alloc(64, n);
    // CHECK: call i32 @isotherm_posix_memalign(ptr noundef %{{.*}}, i64 noundef 64, i64 noundef %{{.*}}, ptr @isotherm_site.
    if (posix_memalign(&place, 64, n))
        return place;
    // CHECK: @isotherm_valloc(i64 noundef %{{.*}}, ptr @isotherm_site.
    block = valloc(n);
    // CHECK: @isotherm_pvalloc(i64 noundef %{{.*}}, ptr @isotherm_site.
    block = pvalloc(n);
    // CHECK: @isotherm_strdup(ptr noundef %{{.*}}, ptr @isotherm_site.
    block = strdup(text);
    // CHECK: @isotherm_strndup(ptr noundef %{{.*}}, i64 noundef 3, ptr @isotherm_site.
    block = strndup(text, 3);
    // CHECK: call void %{{.*}}(ptr
    free(block);
    return block;
}
