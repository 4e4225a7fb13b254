/* What the programs of `bench/run truth` and `bench/run compressed` share: arrays, random numbers, the time of the kernel.
 *
 * Each array is made by a call of `ARRAY` in a line of its own, so that it is an allocation site of its own. Results go to
 * standard output and are the same in every run; times go to standard error. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ARRAY(type, count) ((type *)checked(calloc((count), sizeof(type))))

static inline void *checked(void *memory) {
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* Knuth's linear congruential generator; the upper half of its state. */
static inline uint32_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static inline uint64_t below(uint64_t *state, uint64_t limit) {
    return (draw(state) * limit) >> 32;
}

/* More often small than large: the square of a uniform number. */
static inline uint64_t skewed_below(uint64_t *state, uint64_t limit) {
    uint64_t part = ((uint64_t)draw(state) * draw(state)) >> 32;
    part = (part * draw(state)) >> 32;
    return (part * limit) >> 32;
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int finish(const char *name, uint64_t result, double begin) {
    fprintf(stderr, "kernel_seconds %.6f\n", seconds() - begin);
    printf("%s %llu\n", name, (unsigned long long)result);
    return 0;
}

static inline uint64_t argument(int count, char **words, int place, uint64_t otherwise) {
    return count > place ? strtoull(words[place], NULL, 10) : otherwise;
}
