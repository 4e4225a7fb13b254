/* Two sets of 24 MiB, of which one is hot at a time, beside 96 MiB that are never touched again. Reads on its standard
 * input which: "a" or "b"; begins with a, and ends with the input. Prints where each set begins. Each set has a mapping
 * of its own and begins on node 1, so that /proc/PID/numa_maps shows where its pages are. Every page of the hot set is
 * accessed alike, so the share of its pages that are on node 0 is the share of accesses that node 0 serves. */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, SET = 24 << 20, COLD = 4 * SET, COUNT = SET / sizeof(size_t) };

/* With an inaccessible page after it, so that the kernel merges it with no other mapping. */
static void *map(size_t bytes, unsigned long nodes) {
    char *memory = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + bytes, PAGE, PROT_NONE) != 0)
        exit(1);
    if (nodes && syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, &nodes, 8 * sizeof nodes, 0) != 0)
        perror("mbind");
    return memory;
}

/* One cycle through all words in random order: Sattolo's shuffle. */
static void make_cycle(size_t *cycle) {
    unsigned random = 1;
    for (size_t i = 0; i < COUNT; i++)
        cycle[i] = i;
    for (size_t i = COUNT - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        size_t other = random % i, kept = cycle[i];
        cycle[i] = cycle[other];
        cycle[other] = kept;
    }
}

/* An emulated processor takes interrupts between blocks of instructions only, so a timer's samples all
 * fall on a block's first instruction. Here that is the load: without that no access would be seen. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t at, size_t steps) {
    do
        at = next[at];
    while (--steps);
    return at;
}

int main(void) {
    memset(map(COLD, 0), 1, COLD);
    size_t *sets[2] = {map(SET, 2), map(SET, 2)};
    make_cycle(sets[0]);
    memcpy(sets[1], sets[0], SET);
    printf("%lx %lx\n", (unsigned long)sets[0], (unsigned long)sets[1]);
    fflush(stdout);
    size_t at = 0;
    for (int hot = 0;;) {
        struct pollfd input = {.fd = 0, .events = POLLIN};
        char word[2];
        if (poll(&input, 1, 0) > 0) {
            if (read(0, word, sizeof word) <= 0)
                return at == COUNT;
            hot = word[0] == 'b';
        }
        at = walk(sets[hot], at, 100000);
    }
}
