/* Allocations and nothing else, for the sections `pass` (built once by plain clang and once by isotherm-cc) and `atmem`.
 *
 *   pairs pair|written|churn BYTES THREADS ALLOCATIONS
 *
 * pair: one block, made and freed again. written: likewise, and each line of it is written, so that samples find it. churn: each thread holds blocks and replaces them in a
 * random order, from four sites. Prints a checksum, and `nanoseconds_per_allocation` on standard
 * error: processor time, so that other programs on the machine disturb less. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes that a churning thread holds, in blocks of any size. */
enum { HELD_BYTES = 4 << 20, BLOCKS_MAX = 4096 };

static size_t bytes;
static long allocations;
static int churns, writes;

static void fail(void) {
    fputs("pairs: no memory\n", stderr);
    exit(1);
}

static void write_lines(char *block) {
    for (size_t at = 64; at < bytes; at += 64)
        block[at] = 1;
}

static uintptr_t pairs(void) {
    uintptr_t sum = 0;
    for (long i = 0; i < allocations; ++i) {
        /* Volatile: otherwise the compiler may remove an unused block. */
        char *volatile block = malloc(bytes);
        if (!block)
            fail();
        *block = (char)i;
        if (writes)
            write_lines(block);
        sum += (unsigned char)*block;
        free(block);
    }
    return sum;
}

static size_t pick(uint64_t *random, size_t count) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % count;
}

/* Frees a block and returns its first byte. */
static uintptr_t drop(char *block) {
    uintptr_t byte = block ? (unsigned char)*block : 0;
    free(block);
    return byte;
}

static char *fill(char *block, long number) {
    if (!block)
        fail();
    *block = (char)number;
    return block;
}

/* The four sites are in sequence: a compiler merges equal calls in the branches of a choice, and then the choice would
 * count as a cost of the sites. */
static uintptr_t churn(void) {
    size_t count = HELD_BYTES / bytes < BLOCKS_MAX ? HELD_BYTES / bytes : BLOCKS_MAX;
    char **held = calloc(count, sizeof *held);
    if (!held)
        fail();
    uint64_t random = 1;
    uintptr_t sum = 0;
    for (long i = 0; i < allocations; i += 4) {
        size_t slot = pick(&random, count);
        sum += drop(held[slot]);
        held[slot] = fill(malloc(bytes), i);
        slot = pick(&random, count);
        sum += drop(held[slot]);
        held[slot] = fill(malloc(bytes), i + 1);
        slot = pick(&random, count);
        sum += drop(held[slot]);
        held[slot] = fill(malloc(bytes), i + 2);
        slot = pick(&random, count);
        sum += drop(held[slot]);
        held[slot] = fill(malloc(bytes), i + 3);
    }
    for (size_t slot = 0; slot < count; ++slot)
        free(held[slot]);
    free(held);
    return sum;
}

static void *work(void *sum) {
    *(uintptr_t *)sum = churns ? churn() : pairs();
    return NULL;
}

int main(int count, char **words) {
    int threads = count == 5 ? atoi(words[3]) : 0;
    if (threads < 1 || threads > 64 || (bytes = strtoull(words[2], NULL, 10)) < 1 ||
        (allocations = atol(words[4])) < 1) {
        fputs("usage: pairs pair|written|churn BYTES THREADS ALLOCATIONS\n", stderr);
        return 2;
    }
    churns = strcmp(words[1], "churn") == 0;
    writes = strcmp(words[1], "written") == 0;
    pthread_t running[64];
    uintptr_t sums[64], sum = 0;
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < threads; ++i)
        if (pthread_create(&running[i], NULL, work, &sums[i]))
            fail();
    for (int i = 0; i < threads; ++i) {
        pthread_join(running[i], NULL);
        sum += sums[i];
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("%lu\n", (unsigned long)sum);
    fprintf(stderr, "nanoseconds_per_allocation %.3f\n", seconds * 1e9 / (double)allocations / threads);
    return 0;
}
