/* A program whose misses are known by arithmetic: touches lines of one array in a given order.
 *
 *   known LINES ROUNDS STRIDE      LINES lines, STRIDE lines apart, in order, ROUNDS times
 *   known order WAYS SETS          lines of one set, in an order that tells the least recently used line from the oldest one
 *
 * It prints the array's first address and its bytes. A line is 64 bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64 };

static volatile char *array;

static volatile char *make_array(uint64_t lines) {
    void *made = mmap(NULL, lines * LINE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        perror("known: mmap");
        exit(1);
    }
    printf("%llu %llu\n", (unsigned long long)(uintptr_t)made, (unsigned long long)lines * LINE);
    return made;
}

static void touch(uint64_t line) {
    (void)array[line * LINE];
}

/* Fills the set, touches its oldest line again, and adds one line: the second line goes, and the first one stays. */
static void order(uint64_t ways, uint64_t sets) {
    array = make_array((ways + 1) * sets);
    for (uint64_t way = 0; way < ways; way++)
        touch(way * sets);
    touch(0);
    touch(ways * sets);
    for (uint64_t round = 0; round < 100; round++)
        touch(0);
    touch(sets);
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    uint64_t second = strtoull(words[2], NULL, 10), third = strtoull(words[3], NULL, 10);
    if (strcmp(words[1], "order") == 0) {
        order(second, third);
        return 0;
    }
    uint64_t lines = strtoull(words[1], NULL, 10);
    array = make_array(lines * third);
    for (uint64_t round = 0; round < second; round++)
        for (uint64_t line = 0; line < lines; line++)
            touch(line * third);
    return 0;
}
