/* The only allocation, in a file of its own. */
#include <stdlib.h>

void *make(size_t bytes) { return malloc(bytes); }
