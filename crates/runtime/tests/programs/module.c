#include <stdlib.h>
void *make(size_t bytes) {
    char *block = malloc(bytes);
    *block = MARK;
    return block;
}
