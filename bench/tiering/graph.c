/* PageRank over a generated graph of 3 Mi vertices, which counts its accesses by chunk (accesses.h) and prints the share of them that
 * met the fast node.
 *
 *     graph FAST-NODE SLOW-NODE ACCESSES
 *
 * Few vertices are the source of most edges: numbers of edges by a power law, with the vertices in no order. 112 MiB in arrays, as
 * graph programs have them:
 *
 *     scores   float of each vertex                       12 MiB   read and written in order
 *     ends     end of each vertex's list of edges         12 MiB   read in order
 *     degrees  number of edges that a vertex is source of 12 MiB   read in order
 *     sources  sources of all edges, list after list      52 MiB   read in order
 *     parts    what a vertex adds along each of its edges 24 MiB   read once an edge, anywhere
 *
 * A pass reads the parts of all edges, and then makes the parts of the next one. An access is a read of a part, or of a line of 64 bytes
 * in an array that is read or written in order. The hot part is the 24 MiB with most accesses, which are the parts: some nine of ten
 * accesses. They are touched last, on the slow node; all of them have to be moved. */
#define _GNU_SOURCE
#include "accesses.h"
#include <stdint.h>

enum {
    VERTICES = 3 << 20,
    EDGES = 26 * CHUNK / 4,
    MOST_EDGES = 41, /* of a vertex's list: its mean is that of 1/u up to here, 4.3, so that all lists fit */
    BLOCK = 1024,    /* vertices between two looks at the work that is done */
    LINE = 64,
    /* First chunks of the arrays. */
    SCORES = 0, ENDS = 6, DEGREES = 12, SOURCES = 18, PARTS = 44, ALL = 56,
    PARTS_OF_CHUNK = CHUNK / sizeof(double),
};

static struct chunks memory;
static float *scores;
static uint32_t *ends, *degrees, *sources;
static double *parts;

/* A vertex of which the rank among the sources is 1 to 4 Mi by Zipf 1, roughly: each power of two is as probable as the next. The
 * factor has no common divisor with the number of vertices, so that it puts the ranks in an order without pattern. */
static uint32_t draw_source(void) {
    for (;;) {
        unsigned long long drawn = draw();
        uint32_t power = drawn % 22, rank = (1u << power | (drawn >> 32 & ((1u << power) - 1))) - 1;
        if (rank < VERTICES)
            return rank * 2654435761ull % VERTICES;
    }
}

/* Edges of a vertex: d or more with a probability of 1/d. */
static uint32_t draw_edges(void) {
    uint32_t edges = (1ull << 32) / ((uint32_t)(draw() >> 32) + 1ull);
    return edges < MOST_EDGES ? edges : MOST_EDGES;
}

static void make_graph(void) {
    uint32_t edge = 0;
    for (uint32_t vertex = 0; vertex < VERTICES; vertex++) {
        for (uint32_t left = draw_edges(); left > 0 && edge < EDGES; left--) {
            sources[edge] = draw_source();
            degrees[sources[edge++]]++;
        }
        ends[vertex] = edge;
        scores[vertex] = 1.0f / VERTICES;
    }
}

static void make_memory(int fast, int slow) {
    reserve(&memory, ALL, fast);
    char *from = memory.memory;
    scores = (float *)from;
    ends = (uint32_t *)(from + (size_t)ENDS * CHUNK);
    degrees = (uint32_t *)(from + (size_t)DEGREES * CHUNK);
    sources = (uint32_t *)(from + (size_t)SOURCES * CHUNK);
    parts = (double *)(from + (size_t)PARTS * CHUNK);
    make_graph();
    bind_to(slow);
    memset(parts, 0, VERTICES * sizeof *parts);
    bind_to(-1);
    memset(memory.is_hot + PARTS, 1, ALL - PARTS);
}

/* Adds the parts of some sources to a sum, and counts them. The first source is `vertex`; `next` to `end` are the others and one more, which
 * is not used. An emulated processor takes interrupts between blocks of instructions only: the load of a part is the first of its block. */
__attribute__((noipa)) static double gather(const double *part, size_t vertex, const uint32_t *next, const uint32_t *end, long *accesses,
                                            double sum) {
    do {
        sum += part[vertex];
        accesses[vertex / PARTS_OF_CHUNK]++;
        vertex = *next++;
    } while (next != end);
    return sum;
}

/* Counts accesses to the lines of these bytes of an array, and returns their number. */
static long in_order(int first_chunk, size_t offset, size_t bytes) {
    long lines = (bytes + LINE - 1) / LINE;
    memory.accesses[first_chunk + offset / CHUNK] += lines;
    return lines;
}

/* Scores of a block of vertices, from their edges; returns the accesses. */
static long read_edges(uint32_t first) {
    uint32_t from = first == 0 ? 0 : ends[first - 1], edge = from;
    for (uint32_t vertex = first; vertex < first + BLOCK; vertex++) {
        double sum = 0;
        if (edge < ends[vertex])
            sum = gather(parts, sources[edge], sources + edge + 1, sources + ends[vertex] + 1, memory.accesses + PARTS, sum);
        scores[vertex] = 0.15 / VERTICES + 0.85 * sum;
        edge = ends[vertex];
    }
    return edge - from + in_order(SOURCES, from * sizeof *sources, (edge - from) * sizeof *sources) +
           in_order(ENDS, first * sizeof *ends, BLOCK * sizeof *ends) + in_order(SCORES, first * sizeof *scores, BLOCK * sizeof *scores);
}

/* Parts of a block of vertices, from their scores; returns the accesses. */
static long make_parts(uint32_t first) {
    for (uint32_t vertex = first; vertex < first + BLOCK; vertex++)
        parts[vertex] = degrees[vertex] == 0 ? 0 : scores[vertex] / degrees[vertex];
    return in_order(SCORES, first * sizeof *scores, BLOCK * sizeof *scores) +
           in_order(DEGREES, first * sizeof *degrees, BLOCK * sizeof *degrees) + in_order(PARTS, first * sizeof *parts, BLOCK * sizeof *parts);
}

/* Works until so many accesses are done, block by block, and ends a window after each 200th of them. */
static void run(long long work, struct figures *figures) {
    long long done = 0, windows = 0;
    ask_chunks(&memory, memory.share_fast);
    for (uint32_t block = 0; windows < WINDOWS; block = (block + 1) % (2 * VERTICES / BLOCK)) {
        uint32_t first = block % (VERTICES / BLOCK) * BLOCK;
        done += block < VERTICES / BLOCK ? make_parts(first) : read_edges(first);
        if (done >= work * (windows + 1) / WINDOWS) {
            end_chunks_window(&memory, figures, done);
            windows++;
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 4)
        return fprintf(stderr, "usage: graph FAST-NODE SLOW-NODE ACCESSES\n"), 2;
    int fast = number(argv[1], "fast node", 0), slow = number(argv[2], "slow node", 0);
    long long work = number(argv[3], "accesses", WINDOWS * 10000);
    make_memory(fast, slow);
    struct figures figures = {0};
    run(work, &figures);
    print_own_figures(&figures, 1, work);
    return 0;
}
