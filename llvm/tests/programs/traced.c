/* Loops of usual kinds, without special options: the optimiser may vectorise, merge or keep values in registers.
 * Each array comes from its own function and prints its address, a page or more from any other; only the C
 * library touches `block` and `copy` after they are made. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 256, SLOTS = 1 << 15, NODES = 1 << 13, LETTERS = 1 << 18, RANK = 96, KEYS = 1 << 14, BYTES = 1 << 20 };
/* One load of the machine's code would read two neighbouring letters. */
enum { DISTANCE = 3 };

struct node {
    struct node *next;
    long weight, rest[6];
};

static double *make_grid(void) { return calloc(SIDE * SIDE, sizeof(double)); }
static double *make_next_grid(void) { return calloc(SIDE * SIDE, sizeof(double)); }
static uint64_t *make_table(void) { return calloc(SLOTS, sizeof(uint64_t)); }
static struct node *make_nodes(void) { return malloc(NODES * sizeof(struct node)); }
static unsigned char *make_text(void) { return malloc(LETTERS); }
static uint32_t *make_counts(void) { return calloc(1 << 16, sizeof(uint32_t)); }
static float *make_left(void) { return malloc(8 * RANK * RANK * sizeof(float)); }
static float *make_product(void) { return calloc(8 * RANK * RANK, sizeof(float)); }
static int *make_keys(void) { return malloc(4 * KEYS * sizeof(int)); }
static char *make_block(void) { return malloc(BYTES); }
static char *make_copy(void) { return malloc(BYTES); }

static uint64_t state = 88172645463325252u;

static uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

__attribute__((noinline)) static void sweep(double *to, const double *from) {
    for (int y = 1; y < SIDE - 1; y++)
        for (int x = 1; x < SIDE - 1; x++)
            to[y * SIDE + x] = 0.25 * (from[(y - 1) * SIDE + x] + from[(y + 1) * SIDE + x] + from[y * SIDE + x - 1] +
                                       from[y * SIDE + x + 1]);
}

__attribute__((noinline)) static void update(uint64_t *table) {
    for (int i = 0; i < 200000; i++) {
        uint64_t number = random_number();
        table[number % SLOTS] ^= number;
    }
}

__attribute__((noinline)) static void link_nodes(struct node *nodes) {
    for (int i = 0; i < NODES; i++) {
        nodes[i].next = &nodes[(i * 4099 + 1) % NODES];
        nodes[i].weight = i;
    }
}

__attribute__((noinline)) static long walk(const struct node *node) {
    long sum = 0;
    for (int i = 0; i < 300000; i++, node = node->next)
        sum += node->weight;
    return sum;
}

__attribute__((noinline)) static void write_text(unsigned char *text) {
    for (int i = 0; i < LETTERS; i++)
        text[i] = (unsigned char)random_number();
}

__attribute__((noinline)) static void count_pairs(uint32_t *counts, const unsigned char *text) {
    for (int i = DISTANCE; i < LETTERS; i++)
        counts[text[i - DISTANCE] << 8 | text[i]]++;
}

__attribute__((noinline)) static void multiply(float *product, const float *left) {
    for (int row = 0; row < RANK; row++)
        for (int middle = 0; middle < RANK; middle++)
            for (int column = 0; column < RANK; column++)
                product[row * RANK + column] += left[row * RANK + middle] * left[middle * RANK + column];
}

__attribute__((noinline)) static void sift(int *keys, int root, int count) {
    for (int child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && keys[child + 1] > keys[child])
            child++;
        if (keys[root] >= keys[child])
            return;
        int key = keys[root];
        keys[root] = keys[child];
        keys[child] = key;
    }
}

__attribute__((noinline)) static void sort(int *keys) {
    for (int i = KEYS / 2; i-- > 0;)
        sift(keys, i, KEYS);
    for (int count = KEYS; count-- > 1;) {
        int key = keys[0];
        keys[0] = keys[count];
        keys[count] = key;
        sift(keys, 0, count);
    }
}

static void place(const char *name, const void *start, size_t bytes) {
    printf("place %s %zu %zu\n", name, (size_t)start, bytes);
}

int main(void) {
    double *grid = make_grid(), *next = make_next_grid();
    uint64_t *table = make_table();
    struct node *nodes = make_nodes();
    unsigned char *text = make_text();
    uint32_t *counts = make_counts();
    float *left = make_left(), *product = make_product();
    int *keys = make_keys();
    char *block = make_block(), *copy = make_copy();
    place("make_grid", grid, SIDE * SIDE * sizeof *grid);
    place("make_next_grid", next, SIDE * SIDE * sizeof *next);
    place("make_table", table, SLOTS * sizeof *table);
    place("make_nodes", nodes, NODES * sizeof *nodes);
    place("make_text", text, LETTERS);
    place("make_counts", counts, (1 << 16) * sizeof *counts);
    place("make_left", left, 8 * RANK * RANK * sizeof *left);
    place("make_product", product, 8 * RANK * RANK * sizeof *product);
    place("make_keys", keys, 4 * KEYS * sizeof *keys);
    place("make_block", block, BYTES);
    place("make_copy", copy, BYTES);
    for (int i = 0; i < SIDE * SIDE; i++)
        grid[i] = i % 7;
    for (int i = 0; i < 6; i++) {
        sweep(next, grid);
        sweep(grid, next);
    }
    update(table);
    link_nodes(nodes);
    long sum = walk(nodes);
    write_text(text);
    count_pairs(counts, text);
    for (int i = 0; i < RANK * RANK; i++)
        left[i] = (float)(i % 5);
    multiply(product, left);
    for (int i = 0; i < KEYS; i++)
        keys[i] = (int)random_number();
    sort(keys);
    memset(block, (int)sum, BYTES);
    for (int i = 0; i < 3; i++) {
        memcpy(copy, block, BYTES);
        __asm__ volatile("" ::: "memory");
    }
    printf("done %ld %.3f %.1f %u %d %d\n", sum, grid[SIDE + 1], product[7], counts[77], keys[KEYS / 2], copy[9]);
    return 0;
}
