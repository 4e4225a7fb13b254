// The pointer in place of `free`.
//
// It leads to the C library's own at first, for constructors that free before this file's runs; and not
// directly, because a pointer to a function of a library, given as a value, can become one into the program
// (its linkage table), which the runtime would not recognise as its own.
#include <stdlib.h>

#include "frees.h"

// Weak: a statically linked program has no loader, and thus no runtime either.
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

void *isotherm_who_frees(void *own) {
    isotherm_resolve_free resolve = NULL;
    if (dlsym)
        resolve = (isotherm_resolve_free)dlsym(NULL /* RTLD_DEFAULT */, ISOTHERM_RESOLVE_FREE_NAME);
    isotherm_free_function found = resolve ? resolve(own) : NULL;
    return found ? (void *)found : own;
}

static void plain_free(void *block) { free(block); }

extern isotherm_free_function free_pointer ISOTHERM_FREE_POINTER("free");
isotherm_free_function free_pointer = plain_free;

__attribute__((constructor)) static void ask(void) {
    free_pointer = (isotherm_free_function)isotherm_who_frees((void *)free);
}
