/* Allocates for its callers, and says so. */
#include <stddef.h>

__attribute__((malloc, alloc_size(1))) void *checked(size_t bytes, char a, char b, char c, char d, char e, char f);
