// Functions that allocate for their callers are found: they return fresh blocks of a size that
// from their arguments, and nothing else. Each call of one is a site.
// RUN: %cc -O0 %s | FileCheck %s --implicit-check-not='{{(define|call).*}}@isotherm_wrapper.{{(make|find|pool|later|list)}}('
// RUN: %cc -O1 -g %s | FileCheck %s --check-prefix=OPTIMISED
// RUN: %cc -O0 --isotherm-find-wrappers=no %s | FileCheck %s --check-prefix=OFF --implicit-check-not=isotherm_wrapper
// RUN: %cc -O0 -fPIC -fsemantic-interposition %s | FileCheck %s --check-prefix=REPLACEABLE --implicit-check-not=isotherm_wrapper.checked
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char text[8];
};

void *checked(size_t n) {
    void *block = n ? malloc(n) : malloc(1);
    if (!block)
        abort();
    return block;
}

// Through another one, with arithmetic, and past a header.
static char *header(size_t count, int unit) { return (char *)checked(16 + count * unit) + 16; }

static void *aligned(size_t n) {
    void *block = NULL;
    return posix_memalign(&block, 64, n) ? NULL : block;
}

static char *copy(const char *text) {
    size_t n = strlen(text) + 1;
    char *block = malloc(n);
    return block ? memcpy(block, text, n) : NULL;
}

static void *grow(void *block, size_t n) {
    void *moved = realloc(block, n);
    return moved ? moved : block;
}

// Not one: the size is its own.
static struct node *make(void) { return malloc(sizeof(struct node)); }

// Not one: its result need not be a fresh block.
static struct node *known;
static struct node *find(size_t n) { return known ? known : malloc(n); }
static void *pool(size_t n) {
    struct node *first = known;
    if (!first)
        return malloc(n);
    known = first->next;
    return first;
}

// Not one: only the pointer is returned.
static void *later(struct node *to, size_t n) {
    to->next = malloc(n);
    return to->next->text;
}

// Not one: variable arguments cannot be passed on.
static void *list(size_t n, ...) { return malloc(n); }

// CHECK-LABEL: define {{.*}}@use(
// OFF-LABEL: define {{.*}}@use(
// OPTIMISED-LABEL: define {{.*}}@use(
void use(void *volatile *out, size_t n, struct node *to, const char *text) {
    // CHECK: call ptr @isotherm_wrapper.checked(i64 noundef %{{.*}}, ptr @isotherm_site.[[FIRST:[0-9a-f]+]])
    // OPTIMISED: @isotherm_malloc(i64 {{.*}}, ptr nonnull @isotherm_site.[[FIRST:[0-9a-f]+]])
    // OFF: call ptr @checked(
    out[0] = checked(n);
    // CHECK: call ptr @isotherm_wrapper.checked(i64 noundef %{{.*}}, ptr @isotherm_site.
    // CHECK-NOT: [[FIRST]]
    // OPTIMISED: @isotherm_malloc(i64 {{.*}}, ptr nonnull @isotherm_site.
    // OPTIMISED-NOT: [[FIRST]]
    out[1] = checked(n);
    // CHECK: call ptr @isotherm_wrapper.header(i64 noundef %{{.*}}, i32 noundef 8, ptr @isotherm_site.
    out[2] = header(n, 8);
    // CHECK: call ptr @isotherm_wrapper.aligned(
    out[3] = aligned(n);
    // CHECK: call ptr @isotherm_wrapper.copy(
    out[4] = copy(text);
    // CHECK: call ptr @isotherm_wrapper.grow(
    out[5] = grow(out[5], n);
    // CHECK: call ptr @make(
    out[6] = make();
    // CHECK: call ptr @find(
    out[7] = find(n);
    // CHECK: call ptr @pool(
    out[8] = pool(n);
    // CHECK: call ptr @later(
    out[9] = later(to, n);
    // CHECK: @list(
    out[10] = list(n, 1);
}

// REPLACEABLE: call ptr @checked(
