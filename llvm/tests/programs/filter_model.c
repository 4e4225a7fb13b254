/* Random accesses, counted, and beside them, uncounted, a plain model of the cache filter: prints how many of each
   array's accesses miss it. Arguments: lines of the filter, seed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 4, BYTES = 1 << 20, LINE = 64, RUNS = 3000 };

#define UNCOUNTED __attribute__((noinline, disable_sanitizer_instrumentation))
#define COUNTED __attribute__((noinline))

UNCOUNTED static char *make_first(void) { return malloc(BYTES); }
UNCOUNTED static char *make_second(void) { return malloc(BYTES); }
UNCOUNTED static char *make_third(void) { return malloc(BYTES); }
UNCOUNTED static char *make_fourth(void) { return malloc(BYTES); }

COUNTED static void read_one(volatile char *at) { (void)*at; }
COUNTED static void copy_three(volatile char *a, volatile char *b, volatile char *c) {
    *b = *a;
    (void)*c;
}
COUNTED static void fill(char *from, size_t bytes) { memset(from, 1, bytes); }

static char *arrays[ARRAYS];
static uintptr_t *places;
static size_t lines;
static uint64_t misses[ARRAYS], seed;

UNCOUNTED static uint64_t below(uint64_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % bound;
}

UNCOUNTED static void expect(int array, const char *at) {
    uintptr_t line = (uintptr_t)at / LINE;
    if (places[line % lines] != line)
        misses[array]++;
    places[line % lines] = line;
}

/* A run stays within a window, so that some runs fit the filter and others do not. */
UNCOUNTED static void run(void) {
    size_t window = (size_t)LINE << below(14), start = below(BYTES - window), count = 1 + below(2000);
    int array = below(ARRAYS), other = below(ARRAYS), kind = below(4);
    for (size_t i = 0; i < count; i++) {
        char *at = arrays[array] + start + (kind ? below(window) : i * 8 % window);
        if (kind < 2) {
            expect(array, at);
            read_one(at);
        } else if (kind == 2) {
            char *to = arrays[other] + below(BYTES);
            expect(array, at);
            expect(other, to);
            expect(array, arrays[array]);
            copy_three(at, to, arrays[array]);
        } else if (i % 50 == 0) {
            size_t bytes = below(arrays[array] + BYTES - at) % 10000;
            for (size_t line = 0; line < (bytes + LINE - 1) / LINE; line++)
                expect(array, at + line * LINE);
            fill(at, bytes);
        }
    }
}

UNCOUNTED int main(int count, char **words) {
    if (count != 3)
        return 2;
    lines = strtoul(words[1], NULL, 10);
    seed = strtoul(words[2], NULL, 10);
    places = calloc(lines, sizeof *places);
    arrays[0] = make_first(), arrays[1] = make_second(), arrays[2] = make_third(), arrays[3] = make_fourth();
    for (int i = 0; i < RUNS; i++)
        run();
    printf("make_first %lu\nmake_second %lu\nmake_third %lu\nmake_fourth %lu\n", misses[0], misses[1], misses[2], misses[3]);
    return 0;
}
