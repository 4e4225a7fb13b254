/* A program whose hot memory is known, and its own observer: it counts its accesses by chunk of 2 MiB, asks the kernel now and then
 * where the chunks are, and prints the share of its accesses that met the fast node. Work is counted, not time: the clocks of an
 * emulated machine run on while its host is busy.
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
#include <linux/mempolicy.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHUNK = 2 << 20, PAGE = 4096, WORDS = CHUNK / sizeof(size_t), ALL = 56, HOT = 12,
    STEPS = 256,       /* accesses of a visit of a chunk */
    LINES = CHUNK / 64, /* accesses of a scan of a chunk */
    ASKED = 8,         /* pages of a chunk whose node is asked */
    WINDOWS = 200,     /* how often that is done */
    PHASES = 4,
};

static size_t cycle[WORDS];
static char *memory;
static int chunks = ALL, hot_chunks = HOT, order[ALL];
static double at_most[ALL]; /* of the cumulated Zipf weights */
static size_t at;
static unsigned long long random_state = 88172645463325252ull;

static unsigned long long draw(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* All words of a chunk as one cycle in random order (Sattolo). */
static void make_cycle(void) {
    for (size_t i = 0; i < WORDS; i++)
        cycle[i] = i;
    for (size_t i = WORDS - 1; i > 0; i--) {
        size_t other = draw() % i, kept = cycle[i];
        cycle[i] = cycle[other];
        cycle[other] = kept;
    }
}

/* An emulated processor takes interrupts between blocks of instructions only: the load is the first of its block. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t from, size_t steps) {
    do
        from = next[from];
    while (--steps);
    return from;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void bind_to(int node) {
    unsigned long nodes = node < 0 ? 0 : 1ul << node;
    if (syscall(SYS_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_BIND, node < 0 ? NULL : &nodes, 8 * sizeof nodes) != 0)
        fail("set_mempolicy");
}

/* The share of each chunk that is on a node. */
static void ask(int node, double *share) {
    void *pages[ALL * ASKED];
    int nodes[ALL * ASKED];
    for (int i = 0; i < chunks * ASKED; i++)
        pages[i] = memory + (size_t)(i / ASKED) * CHUNK + (size_t)(i % ASKED) * (CHUNK / ASKED);
    if (syscall(SYS_move_pages, 0, (long)chunks * ASKED, pages, NULL, nodes, 0) != 0)
        fail("move_pages");
    for (int chunk = 0; chunk < chunks; chunk++) {
        share[chunk] = 0;
        for (int i = 0; i < ASKED; i++)
            share[chunk] += (nodes[chunk * ASKED + i] == node) / (double)ASKED;
    }
}

static void touch(int chunk) {
    memcpy(memory + (size_t)chunk * CHUNK, cycle, CHUNK);
}

static void make_memory(int slow) {
    memory = mmap(NULL, (size_t)(chunks + 1) * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    memory = (char *)(((size_t)memory + CHUNK - 1) / CHUNK * CHUNK);
    for (int i = 0; i < chunks; i++)
        order[i] = i;
    for (int i = chunks - 1; i > 0; i--) {
        int other = draw() % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = hot_chunks; i < chunks; i++)
        touch(order[i]);
    bind_to(slow);
    for (int i = 0; i < hot_chunks; i++)
        touch(order[i]);
    bind_to(-1);
    double sum = 0;
    for (int i = 0; i < chunks; i++)
        at_most[i] = sum += pow(i + 1, -0.99);
}

static int by_zipf(void) {
    double drawn = draw() / 18446744073709551616.0 * at_most[chunks - 1];
    int rank = 0;
    while (rank < chunks - 1 && at_most[rank] < drawn)
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
        return hot_chunks + visit / 2 * STEPS / LINES % (chunks - hot_chunks);
    case 'p':
    case 'q':
        if (draw() % 10)
            return first + draw() % hot_chunks;
        return (first + hot_chunks + draw() % (chunks - hot_chunks)) % chunks;
    default: return draw() % chunks;
    }
}

int main(int argc, char **argv) {
    while (argc == 2 && strcmp(argv[1], "kick") == 0)
        usleep(5000);
    if (argc != 5)
        return fprintf(stderr, "usage: patterns PATTERN FAST-NODE SLOW-NODE ACCESSES\n"), 2;
    char pattern = argv[1][0];
    int fast = atoi(argv[2]), slow = atoi(argv[3]);
    long long work = atoll(argv[4]);
    if (pattern == 'q')
        chunks = 8, hot_chunks = 4;
    make_cycle();
    make_memory(slow);
    double before[ALL], after[ALL], hot_fast = 0, hot_all = 0, all_fast = 0, all = 0;
    long long visits = work / STEPS, in_window = visits / WINDOWS, phase_began = 0, until_sum = 0;
    int phases = pattern == 'p' ? PHASES : 1, reached = 0, has_reached = 0, phase = 0;
    ask(fast, before);
    for (long long visit = 0; visit < visits || pattern == 'g';) {
        long counts[ALL] = {0};
        int new_phase = visit * phases / visits;
        if (new_phase != phase && pattern != 'g')
            phase = new_phase, phase_began = visit, has_reached = 0;
        int first = phase * hot_chunks;
        for (long long i = 0; i < in_window; i++, visit++) {
            int chunk = order[next_chunk(pattern, first, visit)];
            at = walk((const size_t *)(memory + (size_t)chunk * CHUNK), at, STEPS);
            counts[chunk]++;
            if (pattern == 'q')
                usleep(500);
        }
        ask(fast, after);
        double window_fast = 0, window_hot = 0;
        for (int i = 0; i < chunks; i++) {
            double of = counts[order[i]], met = of * (before[order[i]] + after[order[i]]) / 2;
            int is_hot = i >= first && i < first + hot_chunks;
            all += of, all_fast += met;
            window_hot += is_hot ? of : 0, window_fast += is_hot ? met : 0;
        }
        hot_all += window_hot, hot_fast += window_fast;
        if (!has_reached && window_hot > 0 && window_fast >= 0.9 * window_hot)
            has_reached = 1, reached++, until_sum += visit - phase_began;
        memcpy(before, after, sizeof before);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("hot %.4f all %.4f reached %d of %d until %.4f system %ld.%03ld faults %ld\n", hot_fast / hot_all, all_fast / all, reached, phases,
           reached ? (double)until_sum / reached / visits : 1.0, (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec / 1000,
           usage.ru_minflt);
    return at == WORDS;
}
