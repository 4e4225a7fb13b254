/* Two of the callers of the allocation in across_make.c. */
#include <stddef.h>

void *make(size_t bytes);
__attribute__((noinline)) void *a(size_t bytes) { return make(bytes + 1); }
__attribute__((noinline)) void *b(size_t bytes) { return make(bytes + 2); }
