// Entry points of the C interface: the pass puts them in place of malloc and the like.
//
// A site stores the functions that serve it, so that an allocation costs one load and one call; a call of
// malloc goes there without an entry point (llvm/pass/straight_calls.cpp). Without the runtime that is the
// function that the program called before the pass changed it.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

static void *plain_malloc(size_t bytes, struct isotherm_site *site) {
    (void)site;
    return malloc(bytes);
}

static void *plain_calloc(size_t count, size_t bytes, struct isotherm_site *site) {
    (void)site;
    return calloc(count, bytes);
}

static void *plain_realloc(void *block, size_t bytes, struct isotherm_site *site) {
    (void)site;
    return realloc(block, bytes);
}

static void *plain_reallocarray(void *block, size_t count, size_t bytes,
                                struct isotherm_site *site) {
    (void)site;
    return reallocarray(block, count, bytes);
}

static void *plain_memalign(size_t alignment, size_t bytes, struct isotherm_site *site) {
    (void)site;
    return memalign(alignment, bytes);
}

static void *plain_aligned_alloc(size_t alignment, size_t bytes, struct isotherm_site *site) {
    (void)site;
    return aligned_alloc(alignment, bytes);
}

static int plain_posix_memalign(void **place, size_t alignment, size_t bytes,
                                struct isotherm_site *site) {
    (void)site;
    return posix_memalign(place, alignment, bytes);
}

static void *plain_valloc(size_t bytes, struct isotherm_site *site) {
    (void)site;
    return valloc(bytes);
}

static void *plain_pvalloc(size_t bytes, struct isotherm_site *site) {
    (void)site;
    return pvalloc(bytes);
}

static char *plain_strdup(const char *text, struct isotherm_site *site) {
    (void)site;
    return strdup(text);
}

static char *plain_strndup(const char *text, size_t bytes, struct isotherm_site *site) {
    (void)site;
    return strndup(text, bytes);
}

const struct isotherm_heap_route isotherm_plain_heap = {
    plain_malloc,        plain_calloc,         plain_realloc, plain_reallocarray,
    plain_memalign,      plain_aligned_alloc,  plain_posix_memalign,
    plain_valloc,        plain_pvalloc,        plain_strdup,  plain_strndup,
};

const struct isotherm_heap_route *isotherm_heap_first_use(struct isotherm_site *site) {
    struct isotherm_routes routes = isotherm_ask_runtime(site, NULL);
    const struct isotherm_heap_route *route = routes.heap ? routes.heap : &isotherm_plain_heap;
    if (routes.settled)
        __atomic_store_n(&site->heap_route, route, __ATOMIC_RELEASE);
    return route;
}

ISOTHERM_ENTRY void *isotherm_malloc(size_t bytes, struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->malloc(bytes, site);
}

// The first target of a site that is a call of malloc. From then on the site leads to the function that serves
// it.
ISOTHERM_ENTRY void *isotherm_malloc_at_first(size_t bytes, struct isotherm_site *site) {
    const struct isotherm_heap_route *route = isotherm_heap_route_of(site);
    bool settled = __atomic_load_n(&site->heap_route, __ATOMIC_RELAXED) != NULL;
    if (settled)
        __atomic_store_n(&site->malloc, route->malloc, __ATOMIC_RELEASE);
    return route->malloc(bytes, site);
}

ISOTHERM_ENTRY void *isotherm_calloc(size_t count, size_t bytes, struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->calloc(count, bytes, site);
}

ISOTHERM_ENTRY void *isotherm_realloc(void *block, size_t bytes, struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->realloc(block, bytes, site);
}

ISOTHERM_ENTRY void *isotherm_reallocarray(void *block, size_t count, size_t bytes,
                                           struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->reallocarray(block, count, bytes, site);
}

ISOTHERM_ENTRY void *isotherm_memalign(size_t alignment, size_t bytes,
                                       struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->memalign(alignment, bytes, site);
}

ISOTHERM_ENTRY void *isotherm_aligned_alloc(size_t alignment, size_t bytes,
                                            struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->aligned_alloc(alignment, bytes, site);
}

ISOTHERM_ENTRY int isotherm_posix_memalign(void **place, size_t alignment, size_t bytes,
                                           struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->posix_memalign(place, alignment, bytes, site);
}

ISOTHERM_ENTRY void *isotherm_valloc(size_t bytes, struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->valloc(bytes, site);
}

ISOTHERM_ENTRY void *isotherm_pvalloc(size_t bytes, struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->pvalloc(bytes, site);
}

ISOTHERM_ENTRY char *isotherm_strdup(const char *text, struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->strdup(text, site);
}

ISOTHERM_ENTRY char *isotherm_strndup(const char *text, size_t bytes,
                                      struct isotherm_site *site) {
    return isotherm_heap_route_of(site)->strndup(text, bytes, site);
}
