/* Counts the accesses of a program by where they met their data, for the programs of this folder. Work is counted, not time: the clocks
 * of an emulated machine run on while its host is busy.
 *
 * A run has 200 windows of equal work. A program counts its accesses of a window by place (a chunk of 2 MiB, or one value), asks the
 * kernel before and after the window where the places are, and takes the mean. At the end it prints a line of figures:
 *
 *     hot H all A reached R of P until U system S faults F
 *
 *     H   share of the accesses to the hot part that met the fast node
 *     A   the same of all accesses
 *     R   phases of the program, of P, in which a window met nine of ten hot accesses on the fast node
 *     U   share of all work that was done in a phase until then; mean of these phases
 *     S   processor seconds in the kernel
 *     F   minor page faults */
#ifndef ACCESSES_H
#define ACCESSES_H

#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    WINDOWS = 200,
    CHUNK = 2 << 20,
    CHUNKS_AT_MOST = 56,
    ASKED = 8, /* pages of a chunk whose node is asked */
};

struct figures {
    double hot, hot_fast, all, all_fast; /* accesses */
    double window_hot, window_hot_fast;  /* accesses of this window */
    long long phase_began, until_sum;    /* in the program's unit of work */
    int reached, has_reached;
};

/* The memory of a program whose accesses are counted by chunk. */
struct chunks {
    char *memory;
    int count, fast_node;
    long accesses[CHUNKS_AT_MOST];    /* of this window */
    double share_fast[CHUNKS_AT_MOST]; /* at the beginning of this window */
    char is_hot[CHUNKS_AT_MOST];
};

static inline void fail(const char *what) {
    perror(what);
    exit(1);
}

static inline unsigned long long draw(void) {
    static unsigned long long state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Makes words one cycle in random order (Sattolo). */
static inline void make_cycle(size_t *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        words[i] = i;
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = draw() % i, kept = words[i];
        words[i] = words[other];
        words[other] = kept;
    }
}

/* The number of an argument, at least `least`. */
static inline long long number(const char *text, const char *name, long long least) {
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < least) {
        fprintf(stderr, "%s: \"%s\" is no number from %lld on\n", name, text, least);
        exit(2);
    }
    return value;
}

/* New pages come from this node; of -1, from where the kernel likes. */
static inline void bind_to(int node) {
    unsigned long nodes = node < 0 ? 0 : 1ul << node;
    if (syscall(SYS_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_BIND, node < 0 ? NULL : &nodes, 8 * sizeof nodes) != 0)
        fail("set_mempolicy");
}

/* Writes the node of each page of a process (0: this one), or a negative error where no page is. */
static inline void ask_nodes(int process, long count, void **pages, int *nodes) {
    if (syscall(SYS_move_pages, process, count, pages, NULL, nodes, 0) != 0)
        fail("move_pages");
}

static inline void add_accesses(struct figures *figures, double accesses, double share_fast, int is_hot) {
    figures->all += accesses, figures->all_fast += accesses * share_fast;
    if (is_hot)
        figures->window_hot += accesses, figures->window_hot_fast += accesses * share_fast;
}

static inline void begin_phase(struct figures *figures, long long done) {
    figures->phase_began = done, figures->has_reached = 0;
}

static inline void end_window(struct figures *figures, long long done) {
    figures->hot += figures->window_hot, figures->hot_fast += figures->window_hot_fast;
    if (!figures->has_reached && figures->window_hot > 0 && figures->window_hot_fast >= 0.9 * figures->window_hot)
        figures->has_reached = 1, figures->reached++, figures->until_sum += done - figures->phase_began;
    figures->window_hot = figures->window_hot_fast = 0;
}

static inline void print_figures(const struct figures *figures, int phases, long long work, double system, long faults) {
    printf("hot %.4f all %.4f reached %d of %d until %.4f system %.3f faults %ld\n", figures->hot_fast / figures->hot,
           figures->all_fast / figures->all, figures->reached, phases,
           figures->reached ? (double)figures->until_sum / figures->reached / work : 1.0, system, faults);
}

/* The same of this process. */
static inline void print_own_figures(const struct figures *figures, int phases, long long work) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print_figures(figures, phases, work, usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6, usage.ru_minflt);
}

/* Reserves memory that begins with a chunk. */
static inline void reserve(struct chunks *chunks, int count, int fast_node) {
    char *memory = mmap(NULL, (size_t)(count + 1) * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    chunks->memory = (char *)(((size_t)memory + CHUNK - 1) / CHUNK * CHUNK);
    chunks->count = count, chunks->fast_node = fast_node;
}

/* Writes the share of each chunk that is on the fast node. */
static inline void ask_chunks(const struct chunks *chunks, double *share_fast) {
    void *pages[CHUNKS_AT_MOST * ASKED];
    int nodes[CHUNKS_AT_MOST * ASKED];
    for (int i = 0; i < chunks->count * ASKED; i++)
        pages[i] = chunks->memory + (size_t)i * (CHUNK / ASKED);
    ask_nodes(0, (long)chunks->count * ASKED, pages, nodes);
    for (int chunk = 0; chunk < chunks->count; chunk++) {
        int fast = 0;
        for (int i = 0; i < ASKED; i++)
            fast += nodes[chunk * ASKED + i] == chunks->fast_node;
        share_fast[chunk] = fast / (double)ASKED;
    }
}

/* Adds the accesses of the window to the figures, and begins the next one. */
static inline void end_chunks_window(struct chunks *chunks, struct figures *figures, long long done) {
    double after[CHUNKS_AT_MOST];
    ask_chunks(chunks, after);
    for (int i = 0; i < chunks->count; i++)
        add_accesses(figures, chunks->accesses[i], (chunks->share_fast[i] + after[i]) / 2, chunks->is_hot[i]);
    end_window(figures, done);
    memcpy(chunks->share_fast, after, sizeof after);
    memset(chunks->accesses, 0, sizeof chunks->accesses);
}

#endif
