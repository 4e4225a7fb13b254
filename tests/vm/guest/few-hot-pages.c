/* Makes an array of huge pages on the slow node, and works on 64 KiB of each, until its standard input ends. After each pass it writes to
 * /tmp/where on which nodes these pages are and on which the others: "hot N0=256" and "cold N1=7936". At the end it prints whether their
 * contents are intact. Usage: few-hot-pages NODE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PAGE = 4096, HUGE_PAGE = 2 << 20, COUNT = 16, HOT = 64 << 10, HOT_WORDS = HOT / sizeof(size_t), PAGES = COUNT * (HUGE_PAGE / PAGE),
    STEPS = 1000, VISITS = 1000, NODES = 8,
};

static char *array;
static size_t cycle[HOT_WORDS];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Sattolo's shuffle. */
static void make_cycle(void) {
    unsigned random = 1;
    for (size_t i = 0; i < HOT_WORDS; i++)
        cycle[i] = i;
    for (size_t i = HOT_WORDS - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        size_t other = (random >> 8) % i, kept = cycle[i];
        cycle[i] = cycle[other];
        cycle[other] = kept;
    }
}

/* The hot pages of a huge page, elsewhere in each. */
static char *hot_of(int number) {
    return array + (size_t)number * HUGE_PAGE + (size_t)number * 2 * HOT % HUGE_PAGE;
}

static int is_hot(const char *page) {
    const char *hot = hot_of((page - array) / HUGE_PAGE);
    return page >= hot && page < hot + HOT;
}

static void make_array(int node) {
    unsigned long nodes = 1ul << node;
    array = aligned_alloc(HUGE_PAGE, (size_t)COUNT * HUGE_PAGE);
    if (!array || madvise(array, (size_t)COUNT * HUGE_PAGE, MADV_HUGEPAGE) != 0)
        fail("huge pages");
    if (syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 8 * sizeof nodes) != 0)
        fail("set_mempolicy");
    memset(array, 7, (size_t)COUNT * HUGE_PAGE);
    if (syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0) != 0)
        fail("set_mempolicy");
    for (int i = 0; i < COUNT; i++)
        memcpy(hot_of(i), cycle, HOT);
}

/* An emulated processor takes interrupts between blocks of instructions only: the load is the first of its block. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t at, size_t steps) {
    do
        at = next[at];
    while (--steps);
    return at;
}

/* Asks for all nodes at once: pages that move between two questions would count twice, or not at all. */
static void ask_nodes(int *nodes) {
    static void *pages[PAGES];
    for (int i = 0; i < PAGES; i++)
        pages[i] = array + (size_t)i * PAGE;
    if (syscall(SYS_move_pages, 0, (long)PAGES, pages, NULL, nodes, 0) != 0)
        fail("move_pages");
}

static void print_nodes(int file, const char *name, int hot, const int *nodes) {
    size_t pages_on[NODES] = {0};
    for (int i = 0; i < PAGES; i++)
        if (is_hot(array + (size_t)i * PAGE) == hot && nodes[i] >= 0 && nodes[i] < NODES)
            pages_on[nodes[i]]++;
    dprintf(file, "%s", name);
    for (int node = 0; node < NODES; node++)
        if (pages_on[node])
            dprintf(file, " N%d=%zu", node, pages_on[node]);
    dprintf(file, "\n");
}

/* The file gets its name when it is complete. */
static void write_where(void) {
    static int nodes[PAGES];
    int file = open("/tmp/where.new", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        fail("/tmp/where.new");
    ask_nodes(nodes);
    print_nodes(file, "hot", 1, nodes);
    print_nodes(file, "cold", 0, nodes);
    close(file);
    if (rename("/tmp/where.new", "/tmp/where") != 0)
        fail("/tmp/where");
}

static int is_whole(void) {
    for (char *page = array; page < array + (size_t)COUNT * HUGE_PAGE; page++)
        if (!is_hot(page) && *page != 7)
            return 0;
    for (int i = 0; i < COUNT; i++)
        if (memcmp(hot_of(i), cycle, HOT) != 0)
            return 0;
    return 1;
}

int main(int argc, char **argv) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    size_t at = 0;
    make_cycle();
    make_array(argc > 1 ? atoi(argv[1]) : 0);
    while (poll(&input, 1, 0) == 0) {
        for (int visit = 0; visit < VISITS * COUNT; visit++)
            at = walk((const size_t *)hot_of(visit % COUNT), at, STEPS);
        write_where();
    }
    printf("contents %s\n", is_whole() && at < HOT_WORDS ? "whole" : "damaged");
    return 0;
}
