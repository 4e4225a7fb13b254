/* Frees, resizes and measures blocks of a library that was loaded with RTLD_DEEPBIND. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has(const char *block, size_t bytes, int value) {
  for (size_t i = 0; i < bytes; ++i)
    if (block[i] != value) return 0;
  return 1;
}

int main(int count, char **words) {
  void *library = dlopen(words[count - 1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == NULL) return printf("%s\n", dlerror()), 1;
  void *(*make)(int, size_t) = (void *(*)(int, size_t))dlsym(library, "make");
  void *(*allocator)(void) = (void *(*)(void))dlsym(library, "allocator");
  void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  printf("its own allocator: %s\n", allocator() == dlsym(libc, "malloc") ? "yes" : "no");
  const size_t sizes[] = {2, 100, 5000, 100000, 3 << 20};
  long good = 0;
  for (int round = 0; round < 2; ++round)
    for (int how = 0; how < 5; ++how)
      for (int size = 0; size < 5; ++size) {
        const size_t bytes = sizes[size];
        char *mine = malloc(bytes), *freed = make(how, bytes), *grown = make(how, bytes), *shrunk = make(how, bytes);
        good += malloc_usable_size(freed) >= bytes && malloc_usable_size(mine) >= bytes;
        grown = realloc(grown, 3 * bytes);
        shrunk = reallocarray(shrunk, 1, bytes / 2);
        good += has(freed, bytes, how + 1) + has(grown, bytes, how + 1) + has(shrunk, bytes / 2, how + 1);
        free(freed);
        free(grown);
        good += realloc(shrunk, 0) == NULL;
        free(mine);
      }
  printf("%ld of %d\n", good, 2 * 5 * 5 * 5);
  return 3;
}
