/* One call of malloc that makes an array which is used all the time and two that are not. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BYTES = 4 << 20 };

#define APART __attribute__((noinline))

/* Comes before its callers, and is the only allocation. */
APART static unsigned char *make(size_t bytes) {
    unsigned char *block = malloc(bytes);
    return block;
}
APART static unsigned char *hot(void) { return make(BYTES); }
APART static unsigned char *cold(void) { return make(4 * BYTES); }
APART static unsigned char *colder(void) { return make(4 * BYTES); }

int main(void) {
    unsigned char *first = cold(), *second = colder(), *used = hot();
    for (int i = 0; i < 4 * BYTES; i += 4096)
        first[i] = second[i] = 1;
    unsigned long sum = 0;
    clock_t end = clock() + CLOCKS_PER_SEC * 3 / 2;
    do {
        for (int i = 0; i < BYTES; i += 64)
            sum += ++used[i] == 0;
    } while (clock() < end);
    printf("done %d\n", first[0] + second[0] + (sum == 1));
    free(used);
    free(first);
    free(second);
    return 0;
}
