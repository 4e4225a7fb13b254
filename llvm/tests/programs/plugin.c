#include <stdlib.h>

void *in_plugin(size_t bytes) {
    void *block;
    return posix_memalign(&block, 64, bytes) ? NULL : block;
}
