// Finds the runtime by name in the running process, so one program works with the runtime preloaded, linked, or
// absent.
#include "resolve.h"

#include <stddef.h>
#include <stdlib.h>

// Weak: a statically linked program has no loader, and thus no runtime either.
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

// Every site refers to this symbol; see ISOTHERM_VERSION_SYMBOL.
#define DEFINE_VERSION(name) \
    __attribute__((visibility("hidden"))) const char name[1] __asm__(ISOTHERM_VERSION_SYMBOL) = {0}
DEFINE_VERSION(isotherm_version_symbol);

static isotherm_resolve runtime;
static int looked_up;

// When the module is loaded, because a lookup takes the loader's lock, which a thread that
// allocates should not wait for. Constructors of other files may allocate before this one runs;
// the first of them looks the runtime up instead.
__attribute__((constructor)) static void look_up(void) {
    if (__atomic_load_n(&looked_up, __ATOMIC_ACQUIRE))
        return;
    isotherm_resolve found = NULL;
    if (dlsym)
        found = (isotherm_resolve)dlsym(NULL /* RTLD_DEFAULT */, ISOTHERM_RESOLVE_NAME);
    __atomic_store_n(&runtime, found, __ATOMIC_RELAXED);
    __atomic_store_n(&looked_up, 1, __ATOMIC_RELEASE);
}

// The linker's name of malloc where it redirects malloc elsewhere (fortran.c).
extern void *__real_malloc(size_t bytes) __attribute__((weak));

struct isotherm_routes isotherm_ask_runtime(struct isotherm_site *site, void *own_new) {
    void *own_malloc = __real_malloc ? (void *)__real_malloc : (void *)malloc;
    look_up();
    isotherm_resolve resolve = __atomic_load_n(&runtime, __ATOMIC_RELAXED);
    if (resolve)
        isotherm_fill_context(site);
    if (resolve && site->version == ISOTHERM_SITE_VERSION)
        return resolve(site, own_malloc, own_new);
    struct isotherm_routes none = {NULL, NULL, 1};
    return none;
}
