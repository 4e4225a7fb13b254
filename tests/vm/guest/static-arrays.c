/* Works on a static array, beside another that it only fills, and prints the kernel's report of the nodes of both: "cold
 * N1=4096". Usage: static-arrays MILLIONS, of accesses. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, COUNT = 1 << 19, NODES = 8 };

static size_t hot[COUNT] __attribute__((aligned(PAGE)));
static char cold[4 * sizeof hot] __attribute__((aligned(PAGE)));

/* Sattolo's shuffle: all indices, as one cycle in random order. */
static void make_cycle(void) {
    unsigned random = 1;
    for (size_t i = 0; i < COUNT; i++)
        hot[i] = i;
    for (size_t i = COUNT - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        size_t other = (random >> 8) % i, kept = hot[i];
        hot[i] = hot[other];
        hot[other] = kept;
    }
}

/* As in hot-and-cold.c: the load is the first instruction of its block, where an emulated processor is sampled. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t at, size_t steps) {
    do
        at = next[at];
    while (--steps);
    return at;
}

static void print_nodes(const char *name, void *memory, size_t bytes) {
    size_t pages_on[NODES] = {0};
    for (size_t at = 0; at < bytes; at += PAGE) {
        void *page = (char *)memory + at;
        int node = -1;
        syscall(SYS_move_pages, 0, 1L, &page, NULL, &node, 0);
        if (node >= 0 && node < NODES)
            pages_on[node]++;
    }
    dprintf(1, "%s", name);
    for (int node = 0; node < NODES; node++)
        if (pages_on[node])
            dprintf(1, " N%d=%zu", node, pages_on[node]);
    dprintf(1, "\n");
}

int main(int argc, char **argv) {
    memset(cold, 1, sizeof cold);
    make_cycle();
    size_t at = 0;
    for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
        at = walk(hot, at, 1000000);
    print_nodes("hot", hot, sizeof hot);
    print_nodes("cold", cold, sizeof cold);
    return at >= COUNT;
}
