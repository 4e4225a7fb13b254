/* Programs for page-out whose use of memory is known. Half of each page is compressible; a second is some 100,000 steps.
 *
 *   patterns scan STEPS      a hot set of 96 MiB, read at random by a skewed rule, beside a cyclic scan of 320 MiB
 *   patterns cold STEPS      the same hot set and a scan of 32 MiB, beside 240 MiB that are made at the start and never used again
 *   patterns phases STEPS    four sets of 96 MiB, each of which is hot for a quarter of the steps
 *
 * A step reads one page of the scan and 500 words of the hot set. Prints a sum of what it read, and to standard error its time and, with phases, the longest time after a change
 * until it works at full speed again. */
#include "../truth/programs/kernel.h"

enum { PAGE_WORDS = 512, READS = 500, PHASES = 4, BLOCKS = 400, IN_A_ROW = 5 };

static const uint64_t mebibyte = 1 << 20;
static uint64_t state = 1;

static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 11;
}

static uint64_t *filled(uint64_t bytes) {
    uint64_t *words = checked(malloc(bytes));
    for (uint64_t at = 0; at < bytes / sizeof *words; at++)
        words[at] = at % PAGE_WORDS < PAGE_WORDS / 2 ? at / PAGE_WORDS : next();
    return words;
}

/* Words at the start are read more often than others: the cube of an even number between 0 and 1. */
static uint64_t read_hot(const uint64_t *hot, uint64_t words) {
    uint64_t sum = 0;
    for (int read = 0; read < READS; read++) {
        double even = (double)next() / 9007199254740992.0;
        sum += hot[(uint64_t)(even * even * even * (double)(words - 1))];
    }
    return sum;
}

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* The times of equal blocks of steps. Full speed: some blocks in a row take no more than a tenth longer than the median of all. */
static double recovery(const double *blocks) {
    double sorted[BLOCKS], longest = 0;
    memcpy(sorted, blocks, sizeof sorted);
    qsort(sorted, BLOCKS, sizeof *sorted, by_value);
    double full = 1.1 * IN_A_ROW * sorted[BLOCKS / 2];
    for (int phase = 1; phase < PHASES; phase++) {
        double slow = 0;
        for (int at = phase * BLOCKS / PHASES; at + IN_A_ROW <= (phase + 1) * BLOCKS / PHASES; at++) {
            double row = 0;
            for (int next = 0; next < IN_A_ROW; next++)
                row += blocks[at + next];
            if (row <= full)
                break;
            slow += blocks[at];
        }
        longest = slow > longest ? slow : longest;
    }
    return longest;
}

static uint64_t scan(const uint64_t *scanned, uint64_t pages, uint64_t step) {
    return scanned[step % pages * PAGE_WORDS + step / pages % PAGE_WORDS];
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: patterns scan|cold|phases STEPS\n");
        return 2;
    }
    int has_phases = strcmp(arguments[1], "phases") == 0, has_cold = strcmp(arguments[1], "cold") == 0;
    uint64_t steps = strtoull(arguments[2], NULL, 10);
    uint64_t hot_bytes = 96 * mebibyte, scanned_bytes = (has_cold || has_phases ? 32 : 320) * mebibyte;
    uint64_t *hot[PHASES];
    for (int phase = 0; phase < (has_phases ? PHASES : 1); phase++)
        hot[phase] = filled(hot_bytes);
    uint64_t *scanned = filled(scanned_bytes), *cold = has_cold ? filled(240 * mebibyte) : NULL;
    double begin = seconds(), block_begin = begin, blocks[BLOCKS] = {0};
    uint64_t sum = 0, block = 0;
    for (uint64_t step = 0; step < steps; step++) {
        if (step * BLOCKS / steps != block) {
            double end = seconds();
            blocks[block] = end - block_begin;
            block_begin = end;
            block = step * BLOCKS / steps;
        }
        uint64_t phase = has_phases ? step * PHASES / steps : 0;
        sum += read_hot(hot[phase], hot_bytes / sizeof **hot);
        sum += scan(scanned, scanned_bytes / sizeof *scanned / PAGE_WORDS, step);
    }
    printf("sum %llu cold %llu\n", (unsigned long long)sum, (unsigned long long)(cold ? cold[7 * PAGE_WORDS] : 0));
    fprintf(stderr, "kernel_seconds %.6f\n", seconds() - begin);
    blocks[block] = seconds() - block_begin;
    if (has_phases)
        fprintf(stderr, "recovery_seconds %.3f\n", recovery(blocks));
    return 0;
}
