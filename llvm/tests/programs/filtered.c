/* Volatile reads, so that every one is made: of one line, of a stream, of an array that fits a small cache, and by threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "counted.h"

enum { AGAIN = 1000000, ROUNDS = 100, SMALL = 2048, THREADS = 4 };

static word *make_line(void) { return malloc(WORDS * sizeof(word)); }
static word *make_stream(void) { return malloc(WORDS * sizeof(word)); }
static word *make_small(void) { return malloc(WORDS * sizeof(word)); }
static word *make_shared(void) { return malloc(WORDS * sizeof(word)); }

static void *read_again(void *from) {
    for (int i = 0; i < AGAIN; i++)
        (void)*(word *)from;
    return NULL;
}

int main(void) {
    word *line = make_line(), *stream = make_stream(), *small = make_small(), *shared = make_shared();
    read_again((void *)line);
    for (int i = 0; i < WORDS; i++)
        (void)stream[i];
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SMALL; i++)
            (void)small[i];
    pthread_t started[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&started[i], NULL, read_again, (void *)shared);
    for (int i = 0; i < THREADS; i++)
        pthread_join(started[i], NULL);
    puts("done");
    return 0;
}
