/* Ranks of a graph whose low vertices have most links: arrays by name, one iteration profiled, then the hot parts moved. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "isotherm.h"

enum { LINKS = 8, ITERATIONS = 10, PRIME = 1000000007 };
static void iterate(int64_t n, const int32_t *links, const int64_t *ranks, int64_t *next) {
    for (int64_t v = 0; v < n; v++) {
        int64_t sum = v;
        for (int k = 0; k < LINKS; k++) sum += ranks[links[v * LINKS + k]];
        next[v] = sum % PRIME;
    }
}

int main(int argc, char **argv) {
    int64_t n = INT64_C(1) << (argc > 1 ? atoi(argv[1]) : 20), sum = 0;
    int32_t *links = isotherm_alloc("links", n * LINKS * sizeof *links);
    int64_t *ranks = isotherm_alloc("ranks", n * sizeof *ranks), *next = isotherm_alloc("next", n * sizeof *next), *swap;
    if (!links || !ranks || !next) return 1;
    for (int64_t i = 0; i < n * LINKS; i++) {
        int64_t x = i * 2654435761 % 4294967296 * n / 4294967296; /* evenly among the vertices */
        links[i] = (int32_t)(x * x / n);                          /* mostly to low ones */
    }
    for (int64_t v = 0; v < n; v++) ranks[v] = 1;
    for (int step = 0; step < ITERATIONS; step++) {
        if (step == 1) isotherm_profile_start();
        iterate(n, links, ranks, next);
        if (step == 1) {
            isotherm_profile_stop();
            struct isotherm_result moved = {.size = sizeof moved};
            int status = isotherm_optimize(NULL, &moved);
            printf("moved %" PRIu64 " bytes to fast memory: %s\n", moved.promoted_bytes, isotherm_status_text(status));
        }
        swap = ranks, ranks = next, next = swap;
    }
    for (int64_t v = 0; v < n; v++) sum = (sum + ranks[v]) % PRIME;
    printf("checksum %" PRId64 "\n", sum);
    isotherm_free(links), isotherm_free(ranks), isotherm_free(next);
}
