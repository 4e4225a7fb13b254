/* A library that finds the C library's allocator first, where it is loaded with RTLD_DEEPBIND. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

void *make(int how, size_t bytes) {
  void *block = NULL;
  switch (how) {
    case 0: block = malloc(bytes); break;
    case 1: block = calloc(1, bytes); break;
    case 2: block = realloc(malloc(1), bytes); break;
    case 3: if (posix_memalign(&block, 64, bytes) != 0) block = NULL; break;
    case 4: {
      char *text = malloc(bytes);
      memset(text, 'x', bytes - 1);
      text[bytes - 1] = 0;
      block = strdup(text);
      free(text);
      break;
    }
  }
  if (block != NULL) memset(block, how + 1, bytes);
  return block;
}

/* The address of the allocator that this library uses. */
void *allocator(void) { return (void *)malloc; }
