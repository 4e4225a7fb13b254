/* To preload in the place of Isotherm's runtime: prints the name, the bytes and the place of each allocation of a named object. */
#include <stdio.h>
#include <stdlib.h>

void *isotherm_alloc(const char *name, size_t bytes) {
    fprintf(stderr, "named %s %zu %p\n", name, bytes, __builtin_return_address(0));
    return aligned_alloc(64, bytes);
}
