/* One array that is used all the time and one that is not: a profile must distinguish them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BYTES = 4 << 20 };

static unsigned char *make_hot(void) { return malloc(BYTES); }
static unsigned char *make_cold(void) { return malloc(4 * BYTES); }

int main(void) {
    unsigned char *cold = make_cold(), *hot = make_hot();
    for (int i = 0; i < 4 * BYTES; i += 4096)
        cold[i] = 1;
    unsigned long sum = 0;
    clock_t end = clock() + CLOCKS_PER_SEC * 3 / 2;
    do {
        for (int i = 0; i < BYTES; i += 64)
            sum += ++hot[i] == 0;
    } while (clock() < end);
    printf("done %d\n", cold[0] + (sum == 1));
    free(hot);
    free(cold);
    return 0;
}
