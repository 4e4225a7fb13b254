/* Uses isotherm.h on memory nodes: objects by name, a profile, hints, and optimizations with a limit and without. After each step it
 * prints the nodes of its data by the kernel's word ("hot N1=1024"), and what the optimization returned:
 *
 *     step promoted=1024 demoted=512 capacity=2048 shared=0 ...     in pages, with those that stay by reason
 *
 * Ends with status 0 if no byte of its data is lost. */
#define _GNU_SOURCE
#include <isotherm.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 1 << 20, HOT = 4 * MIB, COLD = 24 * MIB, INDEX = 1 * MIB, COUNT = HOT / sizeof(size_t), NODES = 8, PROFILES = 20 };

static char table[INDEX] __attribute__((aligned(PAGE)));

/* One cycle through all of the array, in an order that no prefetcher follows (a full period of the generator). */
static void make_cycle(size_t *cycle) {
    for (size_t i = 0; i < COUNT; i++)
        cycle[i] = (i * 1664525u + 1013904223u) % COUNT;
}

static int is_cycle(const size_t *cycle) {
    for (size_t i = 0; i < COUNT; i++)
        if (cycle[i] != (i * 1664525u + 1013904223u) % COUNT)
            return 0;
    return 1;
}

/* An emulated processor takes interrupts between blocks of instructions only, so a timer's samples all
 * fall on a block's first instruction. Here that is the load. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t at, size_t steps) {
    do
        at = next[at];
    while (--steps);
    return at;
}

static void print_nodes(const char *name, char *memory, size_t bytes) {
    size_t pages_on[NODES] = {0};
    for (char *at = (char *)(((size_t)memory + PAGE - 1) / PAGE * PAGE); at + PAGE <= memory + bytes; at += PAGE) {
        void *page = at;
        int node = -1;
        syscall(SYS_move_pages, 0, 1L, &page, NULL, &node, 0);
        if (node >= 0 && node < NODES)
            pages_on[node]++;
    }
    printf("%s", name);
    for (int node = 0; node < NODES; node++)
        if (pages_on[node])
            printf(" N%d=%zu", node, pages_on[node]);
    puts("");
}

static int optimize(const char *step, uint64_t fast_bytes) {
    struct isotherm_options options = {.size = sizeof options, .fast_bytes = fast_bytes};
    struct isotherm_result result = {.size = sizeof result};
    int status = isotherm_optimize(&options, &result);
    if (status == ISOTHERM_NO_SAMPLES)
        return status;
    const struct {
        const char *name;
        uint64_t bytes;
    } numbers[] = {
        {"promoted", result.promoted_bytes},
        {"demoted", result.demoted_bytes},
        {"capacity", result.capacity_bytes},
        {"not-hot", result.stayed_bytes[ISOTHERM_STAYED_NOT_HOT]},
        {"not-touched", result.stayed_bytes[ISOTHERM_STAYED_NOT_TOUCHED]},
        {"not-movable", result.stayed_bytes[ISOTHERM_STAYED_NOT_MOVABLE]},
        {"shared", result.stayed_bytes[ISOTHERM_STAYED_SHARED]},
    };
    printf("%s", step);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        printf(" %s=%d", numbers[i].name, (int)(numbers[i].bytes / PAGE));
    printf(" %s\n", isotherm_status_text(status));
    return status;
}

static char *mapping(const char *name, size_t bytes) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("registered %d\n", isotherm_register(name, memory, bytes));
    return memory;
}

int main(void) {
    char stack[8 * PAGE];
    /* The first request: from here on nothing moves but by `optimize`. */
    isotherm_profile_stop();
    /* First touch: the cold object takes the fast memory. */
    char *cold = isotherm_alloc("cold", COLD);
    memset(cold, 1, COLD);
    size_t *hot = isotherm_alloc("hot", HOT), at = 0;
    make_cycle(hot);
    char *index = mapping("index", INDEX), *untouched = mapping("untouched", INDEX);
    memset(index, 2, INDEX);
    printf("static %d\n", isotherm_register("table", table, INDEX));
    memset(table, 4, INDEX);
    memset(stack, 3, sizeof stack);
    print_nodes("hot-at-first", (char *)hot, HOT);

    /* While a child shares all pages, the kernel moves none. */
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    int status = ISOTHERM_NO_SAMPLES;
    for (int i = 0; i < PROFILES && status == ISOTHERM_NO_SAMPLES; i++) {
        isotherm_profile_start();
        at = walk(hot, at, 4000000);
        isotherm_profile_stop();
        status = optimize("shared", 0);
    }
    print_nodes("hot-shared", (char *)hot, HOT);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);

    optimize("profiled", 0);
    print_nodes("hot", (char *)hot, HOT);
    print_nodes("cold", cold, COLD);

    printf("hinted %d %d %d %d\n", isotherm_hint(index, INDEX, ISOTHERM_HOT), isotherm_hint(table, INDEX, ISOTHERM_HOT),
           isotherm_hint(untouched, INDEX, ISOTHERM_HOT), isotherm_hint(stack, sizeof stack, ISOTHERM_HOT));
    optimize("by-hints", UINT64_MAX);
    print_nodes("index", index, INDEX);
    print_nodes("table", table, INDEX);

    optimize("none-fast", ISOTHERM_NO_FAST_BYTES);
    print_nodes("hot-at-last", (char *)hot, HOT);
    print_nodes("cold-at-last", cold, COLD);
    print_nodes("index-at-last", index, INDEX);
    print_nodes("table-at-last", table, INDEX);

    int lost = !is_cycle(hot) || at >= COUNT;
    for (size_t i = 0; i < COLD; i++)
        lost |= cold[i] != 1;
    for (size_t i = 0; i < INDEX; i++)
        lost |= index[i] != 2 || table[i] != 4;
    for (size_t i = 0; i < sizeof stack; i++)
        lost |= stack[i] != 3;
    isotherm_free(hot);
    isotherm_free(cold);
    return lost;
}
