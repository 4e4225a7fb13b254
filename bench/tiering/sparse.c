/* A program of which little is hot in each huge page; it counts its accesses by place and prints the share of them that met the fast
 * node (accesses.h).
 *
 *     sparse FAST-NODE SLOW-NODE ACCESSES
 *
 * 112 MiB, of which 40 MiB are touched first, on the fast node, and the others on the slow one. 99 % of the accesses are to the hot
 * part: 64 KiB of each chunk of 2 MiB, at a place of its own, 3.5 MiB in all. The others are anywhere. What is hot has room on the fast
 * node many times, and the chunks that have it have not. */
#define _GNU_SOURCE
#include "accesses.h"

enum {
    WORDS = CHUNK / sizeof(size_t), ALL = CHUNKS_AT_MOST,
    BLOCK = 64 << 10, BLOCK_WORDS = BLOCK / sizeof(size_t),
    STEPS = 8, /* accesses of a visit: no data stays in the processor's address cache */
    ON_FAST = 20, /* chunks that are touched first, where the kernel likes */
    ASKED_OF_BLOCK = 4,
};

static struct chunks memory; /* its accesses are those outside of the blocks */
static size_t block_of[ALL], at;
static long block_accesses[ALL];
static double block_fast[ALL];

static size_t *block(int chunk) {
    return (size_t *)(memory.memory + (size_t)chunk * CHUNK + block_of[chunk] * BLOCK);
}

/* An emulated processor takes interrupts between blocks of instructions only: the load is the first of its block. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t from, size_t steps) {
    do
        from = next[from];
    while (--steps);
    return from;
}

__attribute__((noinline)) static size_t wander(const size_t *words, size_t from, size_t steps) {
    do
        from = (words[from] + from * 2862933555777941757ull + 3037000493ull) % WORDS;
    while (--steps);
    return from;
}

static void make_memory(int fast, int slow) {
    reserve(&memory, ALL, fast);
    for (int chunk = 0; chunk < ALL; chunk++) {
        bind_to(chunk < ON_FAST ? -1 : slow);
        memset(memory.memory + (size_t)chunk * CHUNK, 1, CHUNK);
        block_of[chunk] = draw() % (CHUNK / BLOCK);
        make_cycle(block(chunk), BLOCK_WORDS);
    }
    bind_to(-1);
}

/* Writes the share of each block that is on the fast node. */
static void ask_blocks(double *share_fast) {
    void *pages[ALL * ASKED_OF_BLOCK];
    int nodes[ALL * ASKED_OF_BLOCK];
    for (int i = 0; i < ALL * ASKED_OF_BLOCK; i++)
        pages[i] = (char *)block(i / ASKED_OF_BLOCK) + i % ASKED_OF_BLOCK * (BLOCK / ASKED_OF_BLOCK);
    ask_nodes(0, ALL * ASKED_OF_BLOCK, pages, nodes);
    for (int chunk = 0; chunk < ALL; chunk++) {
        int fast = 0;
        for (int i = 0; i < ASKED_OF_BLOCK; i++)
            fast += nodes[chunk * ASKED_OF_BLOCK + i] == memory.fast_node;
        share_fast[chunk] = fast / (double)ASKED_OF_BLOCK;
    }
}

static void visit_chunks(long long visits) {
    for (long long visit = 0; visit < visits; visit++) {
        int chunk = draw() % ALL, is_hot = draw() % 100 != 0;
        at = is_hot ? walk(block(chunk), at % BLOCK_WORDS, STEPS) : wander((size_t *)(memory.memory + (size_t)chunk * CHUNK), at, STEPS);
        (is_hot ? block_accesses : memory.accesses)[chunk] += STEPS;
    }
}

static void end_blocks_window(struct figures *figures, long long done) {
    double after[ALL];
    ask_blocks(after);
    for (int chunk = 0; chunk < ALL; chunk++)
        add_accesses(figures, block_accesses[chunk], (block_fast[chunk] + after[chunk]) / 2, 1);
    memcpy(block_fast, after, sizeof after);
    memset(block_accesses, 0, sizeof block_accesses);
    end_chunks_window(&memory, figures, done);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return fprintf(stderr, "usage: sparse FAST-NODE SLOW-NODE ACCESSES\n"), 2;
    int fast = number(argv[1], "fast node", 0), slow = number(argv[2], "slow node", 0);
    long long visits = number(argv[3], "accesses", (long long)WINDOWS * STEPS) / STEPS;
    make_memory(fast, slow);
    struct figures figures = {0};
    ask_chunks(&memory, memory.share_fast);
    ask_blocks(block_fast);
    for (int window = 0; window < WINDOWS; window++) {
        visit_chunks(visits / WINDOWS);
        end_blocks_window(&figures, (window + 1) * (visits / WINDOWS));
    }
    print_own_figures(&figures, 1, visits);
    return at == WORDS;
}
