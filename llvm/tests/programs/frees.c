// Blocks of every size from two sites, freed by other threads than made them, until far more was allocated than may
// be held at once. Prints the peak of the program's memory, in MiB, and its place.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ROUNDS = 400, BLOCKS = 256, LARGEST = 4 << 20 };

__attribute__((noinline)) static unsigned char *here(size_t bytes) { return malloc(bytes); }
__attribute__((noinline)) static unsigned char *there(size_t bytes) { return malloc(bytes); }

static unsigned char *blocks[BLOCKS];
static size_t sizes[BLOCKS];
static uint64_t state = 1;

static size_t random_below(size_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

static void *drop_all(void *unused) {
    for (int i = 0; i < BLOCKS; ++i) {
        if (blocks[i][0] != (unsigned char)i || blocks[i][sizes[i] - 1] != (unsigned char)i) {
            puts("contents lost");
            exit(1);
        }
        free(blocks[i]);
    }
    free(NULL);
    return unused;
}

int main(void) {
    unsigned char *first[2] = {here(100), there(100)};
    printf("here %lx\nthere %lx\n", (unsigned long)first[0] >> 21, (unsigned long)first[1] >> 21);
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < BLOCKS; ++i) {
            // As many of each order of magnitude.
            sizes[i] = 1 + random_below(LARGEST >> random_below(22));
            blocks[i] = random_below(2) ? here(sizes[i]) : there(sizes[i]);
            blocks[i][0] = blocks[i][sizes[i] - 1] = (unsigned char)i;
        }
        pthread_t other;
        if (round % 2 || pthread_create(&other, NULL, drop_all, NULL) != 0)
            drop_all(NULL);
        else
            pthread_join(other, NULL);
    }
    free(first[0]);
    free(first[1]);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("MiB %ld\n", usage.ru_maxrss >> 10);
    return 0;
}
