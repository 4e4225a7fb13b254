#include <stdlib.h>

void *other_file(size_t bytes) { return calloc(1, bytes); }
