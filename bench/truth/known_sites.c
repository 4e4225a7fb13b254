/* Two blocks from two sites, for a cache of 8 MiB: one of four times its size, read in a circle, and one of half of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE = 8 << 20, LINE = 64 };

__attribute__((noinline)) static char *streams(void) {
    char *made = malloc(4 * CACHE);
    return made ? memset(made, 1, 4 * CACHE) : NULL;
}

__attribute__((noinline)) static char *fits(void) {
    char *made = malloc(CACHE / 2);
    return made ? memset(made, 1, CACHE / 2) : NULL;
}

static long sum(const char *bytes, size_t size, int rounds) {
    const volatile char *read = bytes;
    long total = 0;
    for (int round = 0; round < rounds; round++)
        for (size_t at = 0; at < size; at += LINE)
            total += read[at];
    return total;
}

int main(void) {
    char *large = streams();
    if (!large)
        return 1;
    long total = sum(large, 4 * CACHE, 10);
    char *small = fits();
    if (!small)
        return 1;
    total += sum(small, CACHE / 2, 10);
    printf("%ld\n", total);
    return 0;
}
