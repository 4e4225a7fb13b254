#include <stdlib.h>

void *in_library(size_t bytes) { return realloc(NULL, bytes); }
