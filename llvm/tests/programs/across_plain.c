/* Built by another compiler: what it calls is called from outside. */
#include <stddef.h>

void *make(size_t bytes);
void *plain(size_t bytes) { return make(bytes + 3); }
