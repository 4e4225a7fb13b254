/* Known numbers of accesses, because each is volatile: every one is made, and no more.
 *
 *   counted [plain | threads | fork | signals | library PLUGIN]
 *
 * Each array is of WORDS words and filled once; a comment beside each loop names its other accesses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counted.h"

static word *make_filled(void) { return malloc(WORDS * sizeof(word)); }
static word *make_read(void) { return malloc(WORDS * sizeof(word)); }
static word *make_changed(void) { return malloc(WORDS * sizeof(word)); }
static word *make_atomic(void) { return malloc(WORDS * sizeof(word)); }
static char *make_copied(void) { return malloc(WORDS * sizeof(word)); }
static char *make_copy(void) { return malloc(WORDS * sizeof(word)); }

static word *filled, *read_often, *changed, *atomics;
static char *copied, *copy;

static void fill(word *to) {
    for (int i = 0; i < WORDS; i++)
        to[i] = i;
}

static void read_all(word *from) {
    for (int i = 0; i < WORDS; i++)
        (void)from[i];
}

static void plain(void) {
    const size_t bytes = WORDS * sizeof(word);
    read_all(read_often);                   // a load for each word
    read_all(read_often);
    for (int i = 0; i < WORDS; i++)         // a load and a store
        changed[i] += 1;
    for (int i = 0; i < WORDS; i++)         // one access
        __atomic_fetch_add(&atomics[i], 1, __ATOMIC_RELAXED);
    memset(copied, 1, bytes);               // a store for each line
    __asm__ volatile("" ::: "memory");      // or the next line would be another memset
    memcpy(copy, copied, bytes);            // a load and a store for each line
    for (int i = 0; i < WORDS; i++)         // a load and a store for each of 32 bytes
        memcpy(copy + 32 * (i % 1024), copied + 32 * (i % 1024), 32);
}

static void *thread(void *unused) {
    read_all(read_often);
    return unused;
}

static void threads(void) {
    pthread_t started[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&started[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(started[i], NULL);
}

static void fork_twice(void) {
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            read_all(read_often);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    read_all(read_often);
}

static volatile sig_atomic_t handled;
static volatile char *far;
enum { FAR_PARTS = 64, FAR_BYTES = 32 << 20 };

/* Accesses to a new place each time, which has no room for counts yet. */
static void handle(int number) {
    (void)number;
    (void)far[(size_t)(handled % FAR_PARTS) * FAR_BYTES];
    for (int i = 0; i < 100; i++)
        (void)atomics[i];
    handled++;
}

/* On the smallest stack that programs give their handlers, below which nothing is mapped. */
static void signals(void) {
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    char *block = mmap(NULL, 16 << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t small = {.ss_sp = block + (8 << 10), .ss_size = 8 << 10};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    far = mmap(NULL, (size_t)FAR_PARTS * FAR_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED || far == MAP_FAILED || mprotect(small.ss_sp, small.ss_size, PROT_READ | PROT_WRITE) ||
        sigaltstack(&small, NULL) || sigaction(SIGALRM, &action, NULL)) {
        perror("counted");
        exit(1);
    }
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 60; i++)
        read_all(read_often);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("handled %d\n", (int)handled);
}

static void library(const char *plugin) {
    read_in_library(read_often);
    void *loaded = dlopen(plugin, RTLD_NOW);
    reader *read = loaded ? (reader *)dlsym(loaded, "read_in_library") : NULL;
    if (!read) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    read(read_often);
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "plain";
    filled = make_filled(), read_often = make_read(), changed = make_changed(), atomics = make_atomic();
    copied = make_copied(), copy = make_copy();
    word *arrays[] = {filled, read_often, changed, atomics, (word *)copied, (word *)copy};
    for (int i = 0; i < 6; i++)
        fill(arrays[i]);
    if (strcmp(mode, "plain") == 0)
        plain();
    else if (strcmp(mode, "threads") == 0)
        threads();
    else if (strcmp(mode, "fork") == 0)
        fork_twice();
    else if (strcmp(mode, "signals") == 0)
        signals();
    else
        library(words[2]);
    printf("done %ld\n", (long)filled[7]);
    return 0;
}
