/* A program of ATMem's paper (CGO 2020, listing 1): its five functions, as a user of ATMem calls them. Ends with status 0 where its
 * data is what it wrote. */
#include <stdio.h>
#include <stdlib.h>

#include "isotherm.h"

enum { COUNT = 1 << 16 };

static unsigned long sum(const unsigned *values) {
    unsigned long all = 0;
    for (size_t i = 0; i < COUNT; i++)
        all += values[i];
    return all;
}

int main(void) {
    unsigned *values = atmem_malloc(COUNT * sizeof *values);
    if (!values)
        return 1;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (unsigned)i;
    atmem_profiling_start();
    unsigned long first = sum(values);
    atmem_profiling_stop();
    atmem_optimize();
    unsigned long second = sum(values);
    atmem_free(values);
    printf("%lu\n", first);
    return first == second && first == (unsigned long)COUNT * (COUNT - 1) / 2 ? 0 : 1;
}
