/* Programs whose hot memory is known, and their own observers: each counts its accesses by chunk (accesses.h) and prints the share of
 * them that met the fast node.
 *
 *     patterns kick                     wakes up every 5 ms, for ever
 *     patterns zipf|phases|scan|quiet|greedy FAST-NODE SLOW-NODE ACCESSES
 *
 *     zipf     112 MiB, chunks by Zipf 0.99 in random order; the 24 MiB with most accesses are the hot ones
 *     phases   112 MiB, 90 % of the accesses to 24 MiB, which are others in each quarter of the work
 *     scan     112 MiB, half of the accesses to 24 MiB, half one after the other to the lines of the rest
 *     quiet    16 MiB, of which 8 MiB are hot; rests for a while after each visit
 *     greedy   112 MiB, all alike, until it is killed
 *
 * The rest of the memory is touched before the hot part, and the hot part on the slow node: all of it has to be moved. */
#define _GNU_SOURCE
#include "accesses.h"
#include <math.h>

enum {
    WORDS = CHUNK / sizeof(size_t), ALL = CHUNKS_AT_MOST, HOT = 12,
    STEPS = 256,        /* accesses of a visit of a chunk */
    LINES = CHUNK / 64, /* accesses of a scan of a chunk */
    PHASES = 4,
};

static size_t cycle[WORDS];
static struct chunks memory;
static int hot_chunks = HOT, order[ALL];
static double at_most[ALL]; /* of the cumulated Zipf weights */
static size_t at;

/* An emulated processor takes interrupts between blocks of instructions only: the load is the first of its block. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t from, size_t steps) {
    do
        from = next[from];
    while (--steps);
    return from;
}

static const size_t *chunk_at(int chunk) {
    return (const size_t *)(memory.memory + (size_t)chunk * CHUNK);
}

static void touch(int chunk) {
    memcpy(memory.memory + (size_t)chunk * CHUNK, cycle, CHUNK);
}

static void make_order(void) {
    for (int i = 0; i < memory.count; i++)
        order[i] = i;
    for (int i = memory.count - 1; i > 0; i--) {
        int other = draw() % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void make_memory(int slow) {
    make_order();
    for (int i = hot_chunks; i < memory.count; i++)
        touch(order[i]);
    bind_to(slow);
    for (int i = 0; i < hot_chunks; i++)
        touch(order[i]);
    bind_to(-1);
    double sum = 0;
    for (int i = 0; i < memory.count; i++)
        at_most[i] = sum += pow(i + 1, -0.99);
}

static int by_zipf(void) {
    double drawn = draw() / 18446744073709551616.0 * at_most[memory.count - 1];
    int rank = 0;
    while (rank < memory.count - 1 && at_most[rank] < drawn)
        rank++;
    return rank;
}

/* Number in `order` of the chunk of the next visit. The first hot one of a phase is `first`. */
static int next_chunk(char pattern, int first, long long visit) {
    switch (pattern) {
    case 'z': return by_zipf();
    case 's':
        if (visit % 2)
            return draw() % hot_chunks;
        return hot_chunks + visit / 2 * STEPS / LINES % (memory.count - hot_chunks);
    case 'p':
    case 'q':
        if (draw() % 10)
            return first + draw() % hot_chunks;
        return (first + hot_chunks + draw() % (memory.count - hot_chunks)) % memory.count;
    default: return draw() % memory.count;
    }
}

static void visit_chunks(char pattern, int first, long long from, long long visits) {
    for (long long visit = from; visit < from + visits; visit++) {
        int chunk = order[next_chunk(pattern, first, visit)];
        at = walk(chunk_at(chunk), at, STEPS);
        memory.accesses[chunk] += STEPS;
        if (pattern == 'q')
            usleep(500);
    }
}

static void choose_hot(int first) {
    for (int i = 0; i < memory.count; i++)
        memory.is_hot[order[i]] = i >= first && i < first + hot_chunks;
}

static void run(char pattern, int phases, long long visits, struct figures *figures) {
    int phase = 0;
    choose_hot(0);
    ask_chunks(&memory, memory.share_fast);
    for (long long visit = 0; visit < visits; visit += visits / WINDOWS) {
        if (visit * phases / visits != phase) {
            phase = visit * phases / visits;
            choose_hot(phase * hot_chunks);
            begin_phase(figures, visit);
        }
        visit_chunks(pattern, phase * hot_chunks, visit, visits / WINDOWS);
        end_chunks_window(&memory, figures, visit + visits / WINDOWS);
    }
}

int main(int argc, char **argv) {
    while (argc == 2 && strcmp(argv[1], "kick") == 0)
        usleep(5000);
    if (argc != 5)
        return fprintf(stderr, "usage: patterns PATTERN FAST-NODE SLOW-NODE ACCESSES\n"), 2;
    char pattern = argv[1][0];
    int fast = number(argv[2], "fast node", 0), slow = number(argv[3], "slow node", 0);
    long long work = number(argv[4], "accesses", (long long)WINDOWS * STEPS);
    if (pattern == 'q')
        hot_chunks = 4;
    reserve(&memory, pattern == 'q' ? 8 : ALL, fast);
    make_cycle(cycle, WORDS);
    make_memory(slow);
    while (pattern == 'g')
        visit_chunks(pattern, 0, 0, 1);
    struct figures figures = {0};
    int phases = pattern == 'p' ? PHASES : 1;
    run(pattern, phases, work / STEPS, &figures);
    print_own_figures(&figures, phases, work / STEPS);
    return at == WORDS;
}
