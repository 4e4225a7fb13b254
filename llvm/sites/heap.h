// The functions that serve a site of the C interface.
#ifndef ISOTHERM_HEAP_H
#define ISOTHERM_HEAP_H

#include "resolve.h"

// The functions that the program called before the pass changed it.
extern const struct isotherm_heap_route isotherm_plain_heap __attribute__((visibility("hidden")));

// Queries the runtime at the first use of a site, and writes its answer into the site.
__attribute__((visibility("hidden"), cold)) const struct isotherm_heap_route *
isotherm_heap_first_use(struct isotherm_site *site);

static inline const struct isotherm_heap_route *isotherm_heap_route_of(struct isotherm_site *site) {
    const struct isotherm_heap_route *route =
        __atomic_load_n(&site->heap_route, __ATOMIC_ACQUIRE);
    return __builtin_expect(route != NULL, 1) ? route : isotherm_heap_first_use(site);
}

#endif
