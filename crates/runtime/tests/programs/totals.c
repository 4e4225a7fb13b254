// Queries jemalloc for the allocated bytes, as redis does for its memory figures.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1000, BYTES = 16384 };

int main(void) {
    int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    if (!mallctl) return 1;
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), i, BYTES);
    uint64_t epoch = 1;
    size_t bytes = sizeof epoch;
    mallctl("epoch", &epoch, &bytes, &epoch, bytes);
    const char *names[] = {"stats.allocated", "stats.active", "stats.resident"};
    for (int i = 0; i < 3; i++) {
        size_t value = 0;
        bytes = sizeof value;
        int error = mallctl(names[i], &value, &bytes, NULL, 0);
        printf("%s: %s\n", names[i], error ? "error" : value >= (size_t)BLOCKS * BYTES ? "all" : "less");
    }
    return blocks[BLOCKS - 1][0] == 0;
}
