/* More arguments than there are registers for them, so that the site is on the stack. */
#include "wrapper.h"

#include <stdlib.h>

void *checked(size_t bytes, char a, char b, char c, char d, char e, char f) {
    char *block = malloc(bytes);
    if (!block)
        abort();
    const char first[] = {a, b, c, d, e, f};
    for (size_t i = 0; i < bytes; ++i)
        block[i] = first[i % sizeof(first)];
    return block;
}
