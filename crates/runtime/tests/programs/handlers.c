// Handlers that allocate, resize and free, one inside the other, while the program allocates blocks that no thread
// cache holds. The C library's own allocator does not survive this, so there is no plain run to compare with.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { TICKS = 10000, KEPT = 64, BLOCKS = 4096 };

static volatile sig_atomic_t ticks;
static unsigned char *kept[KEPT];

static void work(int number) {
    (void)number;
    size_t slot = ticks % KEPT;
    size_t bytes = 16 + (size_t)ticks * 7919 % 90000;
    unsigned char *block = realloc(kept[slot], bytes);
    memset(block, (int)slot, 16);
    block[bytes - 1] = 1;
    if (ticks % 3 == 0) {
        free(block);
        block = NULL;
    }
    kept[slot] = block;
    ticks++;
}

static void tick(int number) {
    work(number);
    if (ticks % 5 == 0)
        raise(SIGUSR2);
}

static __attribute__((noinline)) void *deep(int depth, size_t bytes) {
    volatile char pad[48];
    pad[depth % 48] = 1;
    if (depth == 0)
        return malloc(bytes);
    void *block = deep(depth - 1, bytes);
    return pad[depth % 48] ? block : NULL;
}

// Ends a run that hangs.
static void end_after(int seconds) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    struct itimerspec due = {.it_value = {.tv_sec = seconds}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &due, NULL) != 0)
        perror("timer");
}

int main(void) {
    static unsigned char *blocks[BLOCKS];
    end_after(300);
    signal(SIGALRM, tick);
    signal(SIGUSR2, work);
    struct itimerval timer = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &timer, NULL);
    unsigned state = 1;
    long changed = 0;
    while (ticks < TICKS) {
        state = state * 1664525 + 1013904223;
        unsigned slot = (state >> 8) % BLOCKS;
        changed += blocks[slot] != NULL && *blocks[slot] != slot % 251;
        free(blocks[slot]);
        blocks[slot] = deep(state >> 28, 1 + (state >> 12) % 200000);
        *blocks[slot] = slot % 251;
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < KEPT; i++)
        changed += kept[i] != NULL && kept[i][15] != i;
    printf("%ld blocks changed\n", changed);
    return 0;
}
