/* Kernels whose waiting for memory is known, for `bench/run emulator`.
 *
 *   kernels KERNEL BYTES AMOUNT
 *
 * chase     one dependent load after another through BYTES, in random order; AMOUNT million loads
 * random    independent loads at random places; AMOUNT million
 * update    independent read-modify-writes at random places; AMOUNT million
 * read      sums all words from first to last; AMOUNT GiB
 * write     stores to all words from first to last; AMOUNT GiB
 * compute   arithmetic without memory; AMOUNT million steps
 *
 * Prints `kernel_seconds S` (processor time of the kernel) and `wall_seconds S` on standard error and a checksum on standard output.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64, WORDS = LINE / sizeof(uint64_t) };

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Makes one cycle through the first words of all lines (Sattolo's shuffle). */
static void link_lines(uint64_t *words, uint64_t lines) {
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < lines; i++)
        words[i * WORDS] = i;
    for (uint64_t i = lines - 1; i > 0; i--) {
        uint64_t j = next_random(&state) % i, held = words[i * WORDS];
        words[i * WORDS] = words[j * WORDS];
        words[j * WORDS] = held;
    }
}

static uint64_t chase(const uint64_t *words, uint64_t loads) {
    uint64_t at = 0;
    while (loads--)
        at = words[at * WORDS];
    return at;
}

static uint64_t random_loads(const uint64_t *words, uint64_t count, uint64_t loads) {
    uint64_t state = 1, sum = 0;
    while (loads--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += words[(uint64_t)(((unsigned __int128)state * count) >> 64)];
    }
    return sum;
}

static uint64_t random_updates(uint64_t *words, uint64_t count, uint64_t updates) {
    uint64_t state = 1;
    while (updates--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        words[(uint64_t)(((unsigned __int128)state * count) >> 64)] ^= state;
    }
    return words[0];
}

static uint64_t read_all(const uint64_t *words, uint64_t count, uint64_t rounds) {
    uint64_t sum = 0;
    while (rounds--) {
        for (uint64_t i = 0; i < count; i++)
            sum += words[i];
        __asm__ volatile("" : : "r"(sum) : "memory");
    }
    return sum;
}

static uint64_t write_all(uint64_t *words, uint64_t count, uint64_t rounds) {
    while (rounds--) {
        for (uint64_t i = 0; i < count; i++)
            words[i] = i + rounds;
        __asm__ volatile("" : : "r"(words) : "memory");
    }
    return words[count - 1];
}

static uint64_t compute(uint64_t steps) {
    uint64_t state = 1;
    while (steps--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

static uint64_t positive(const char *text, const char *name) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || value == 0 || *text == '-') {
        fprintf(stderr, "kernels: %s must be a positive number, not \"%s\"\n", name, text);
        exit(2);
    }
    return value;
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: kernels chase|random|update|read|write|compute BYTES AMOUNT\n");
        return 2;
    }
    const char *kernel = words[1];
    uint64_t bytes = positive(words[2], "BYTES") / LINE * LINE, amount = positive(words[3], "AMOUNT");
    uint64_t *data = malloc(bytes);
    if (bytes < 2 * LINE || !data) {
        fprintf(stderr, "kernels: no memory of %s bytes; two lines of %d at least\n", words[2], LINE);
        return 1;
    }
    uint64_t length = bytes / sizeof *data, result = 0, rounds = (amount << 30) / bytes;
    memset(data, 1, bytes);
    if (!strcmp(kernel, "chase"))
        link_lines(data, bytes / LINE);
    double begin = seconds(CLOCK_PROCESS_CPUTIME_ID), begin_wall = seconds(CLOCK_MONOTONIC);
    if (!strcmp(kernel, "chase"))
        result = chase(data, amount * 1000000);
    else if (!strcmp(kernel, "random"))
        result = random_loads(data, length, amount * 1000000);
    else if (!strcmp(kernel, "update"))
        result = random_updates(data, length, amount * 1000000);
    else if (!strcmp(kernel, "read"))
        result = read_all(data, length, rounds);
    else if (!strcmp(kernel, "write"))
        result = write_all(data, length, rounds);
    else if (!strcmp(kernel, "compute"))
        result = compute(amount * 1000000);
    else {
        fprintf(stderr, "kernels: there is no kernel \"%s\"\n", kernel);
        return 2;
    }
    fprintf(stderr, "kernel_seconds %.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
    fprintf(stderr, "wall_seconds %.6f\n", seconds(CLOCK_MONOTONIC) - begin_wall);
    printf("%llu\n", (unsigned long long)result);
    free(data);
    return 0;
}
