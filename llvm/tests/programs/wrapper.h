/* Allocates for its callers, and declares it. */
#include <stddef.h>

__attribute__((malloc, alloc_size(1))) void *checked(size_t bytes, char a, char b, char c, char d, char e, char f);
