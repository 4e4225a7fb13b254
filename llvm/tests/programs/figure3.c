/* One allocation with three callers. Prints the 2 MiB that hold the block of each. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

APART static void *make(size_t bytes) { return malloc(bytes); }
APART static void *a(size_t bytes) { return make(bytes); }
APART static void *b(size_t bytes) { return make(bytes); }
APART static void *c(size_t bytes) { return make(bytes); }

int main(void) {
    void *blocks[] = {a(3001), b(3001), c(3001)};
    for (int i = 0; i < 3; ++i)
        printf("%c %lx\n", 'a' + i, (unsigned long)blocks[i] >> 21);
    for (int i = 0; i < 3; ++i)
        free(blocks[i]);
    return 0;
}
