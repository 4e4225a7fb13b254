// A timer whose handler allocates and frees while the program allocates; longjmp out of a handler.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static sigjmp_buf out;

static void tick(int number) {
    (void)number;
    char *block = malloc(10 + ticks % 5000);
    *block = 1;
    free(block);
    ticks++;
}

static void leave(int number) {
    (void)number;
    siglongjmp(out, 1);
}

static __attribute__((noinline)) void *deep(int depth, size_t bytes) {
    volatile char pad[48];
    pad[depth % 48] = 1;
    if (depth == 0)
        return malloc(bytes);
    void *block = deep(depth - 1, bytes);
    return pad[depth % 48] ? block : NULL;
}

int main(void) {
    signal(SIGALRM, tick);
    struct itimerval timer = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &timer, NULL);
    void *blocks[512] = {0};
    unsigned state = 1;
    for (long i = 0; ticks < 300; i++) {
        state = state * 1664525 + 1013904223;
        unsigned slot = (state >> 8) % 512;
        free(blocks[slot]);
        blocks[slot] = deep(state >> 28, 1 + (state >> 12) % 3000);
        memset(blocks[slot], 3, 1);
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 512; i++)
        free(blocks[i]);
    signal(SIGUSR1, leave);
    int jumps = 0;
    if (sigsetjmp(out, 1) < 1 || ++jumps < 1)
        raise(SIGUSR1);
    printf("ticked, jumped %d\n", jumps);
    return 0;
}
