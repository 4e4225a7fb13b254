// Entry points of C++: the pass puts them in place of operator new and new[]. In a separate file, so that a C
// program needs no C++ library.
#include <new>

#include "resolve.h"

namespace {

using Site = isotherm_site *;

void *plain_single(size_t bytes, Site) { return ::operator new(bytes); }
void *plain_array(size_t bytes, Site) { return ::operator new[](bytes); }
void *plain_single_aligned(size_t bytes, size_t alignment, Site) {
    return ::operator new(bytes, std::align_val_t(alignment));
}
void *plain_array_aligned(size_t bytes, size_t alignment, Site) {
    return ::operator new[](bytes, std::align_val_t(alignment));
}
void *plain_single_nothrow(size_t bytes, Site) { return ::operator new(bytes, std::nothrow); }
void *plain_array_nothrow(size_t bytes, Site) { return ::operator new[](bytes, std::nothrow); }
void *plain_single_aligned_nothrow(size_t bytes, size_t alignment, Site) {
    return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
}
void *plain_array_aligned_nothrow(size_t bytes, size_t alignment, Site) {
    return ::operator new[](bytes, std::align_val_t(alignment), std::nothrow);
}

constexpr isotherm_new_route plain = {
    plain_single,         plain_array,         plain_single_aligned,         plain_array_aligned,
    plain_single_nothrow, plain_array_nothrow, plain_single_aligned_nothrow, plain_array_aligned_nothrow,
};

// A program may replace any of the operators. The runtime serves a site only where none is replaced; the
// functions of the C++ library lead to `operator new(size_t)`, so that a check of that one is enough.
void *operator_new() {
    void *(*function)(size_t) = &::operator new;
    return reinterpret_cast<void *>(function);
}

__attribute__((cold, noinline)) const isotherm_new_route *first_use(Site site) {
    isotherm_routes routes = isotherm_ask_runtime(site, operator_new());
    const isotherm_new_route *route = routes.operator_new ? routes.operator_new : &plain;
    if (routes.settled)
        __atomic_store_n(&site->new_route, route, __ATOMIC_RELEASE);
    return route;
}

inline const isotherm_new_route *route_of(Site site) {
    const isotherm_new_route *route = __atomic_load_n(&site->new_route, __ATOMIC_ACQUIRE);
    return __builtin_expect(route != nullptr, 1) ? route : first_use(site);
}

}  // namespace

extern "C" {

ISOTHERM_ENTRY void *isotherm_new(size_t bytes, Site site) {
    return route_of(site)->single(bytes, site);
}
ISOTHERM_ENTRY void *isotherm_new_array(size_t bytes, Site site) {
    return route_of(site)->array(bytes, site);
}
ISOTHERM_ENTRY void *isotherm_new_aligned(size_t bytes, size_t alignment, Site site) {
    return route_of(site)->single_aligned(bytes, alignment, site);
}
ISOTHERM_ENTRY void *isotherm_new_array_aligned(size_t bytes, size_t alignment, Site site) {
    return route_of(site)->array_aligned(bytes, alignment, site);
}
ISOTHERM_ENTRY void *isotherm_new_nothrow(size_t bytes, Site site) {
    return route_of(site)->single_nothrow(bytes, site);
}
ISOTHERM_ENTRY void *isotherm_new_array_nothrow(size_t bytes, Site site) {
    return route_of(site)->array_nothrow(bytes, site);
}
ISOTHERM_ENTRY void *isotherm_new_aligned_nothrow(size_t bytes, size_t alignment, Site site) {
    return route_of(site)->single_aligned_nothrow(bytes, alignment, site);
}
ISOTHERM_ENTRY void *isotherm_new_array_aligned_nothrow(size_t bytes, size_t alignment, Site site) {
    return route_of(site)->array_aligned_nothrow(bytes, alignment, site);
}

}  // extern "C"
