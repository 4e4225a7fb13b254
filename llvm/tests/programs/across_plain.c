/* Built by another compiler: to the link, its calls come from outside. */
#include <stddef.h>

void *make(size_t bytes);
void *plain(size_t bytes) { return make(bytes + 3); }
