/* Works on memory of its arenas in every way that a mover inside the program could spoil: threads write
 * words that they read back, another throws pages away and expects zeroes, and the first thread makes
 * children in every way and threads on stacks of ours, which read a block that never changes. Prints
 * what was wrong.
 * Goes on until its input ends. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 2, BLOCK = 8 << 20, WORDS = BLOCK / 8, PAGE = 4096, PURGED = 2 << 20 };

static uint64_t *still;
static unsigned long wrong_words, wrong_zeroes, wrong_children;
static int input_ended;
static int writers_left = WRITERS;

__attribute__((noinline)) static uint64_t *make_block(void) { return aligned_alloc(2 << 20, BLOCK); }

static void *write_words(void *argument) {
    uint64_t *words = make_block(), salt = (uintptr_t)argument << 56;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = salt + i;
    for (uint64_t round = 0; !__atomic_load_n(&input_ended, __ATOMIC_RELAXED); round++)
        for (size_t i = 0; i < WORDS; i++) {
            if (__atomic_load_n(&words[i], __ATOMIC_RELAXED) != salt + i + (round << 24))
                __atomic_fetch_add(&wrong_words, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&words[i], salt + i + ((round + 1) << 24), __ATOMIC_RELAXED);
        }
    free(words);
    __atomic_fetch_sub(&writers_left, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Pages thrown away read as zeroes at once, whatever is being moved. */
static void *throw_away(void *unused) {
    char *block = (char *)make_block();
    while (__atomic_load_n(&writers_left, __ATOMIC_ACQUIRE) > 0) {
        memset(block, 7, PURGED);
        if (madvise(block, PURGED, MADV_DONTNEED) != 0)
            perror("madvise");
        for (size_t at = 0; at < PURGED; at += PAGE)
            if (block[at] != 0)
                __atomic_fetch_add(&wrong_zeroes, 1, __ATOMIC_RELAXED);
        mprotect(block + PURGED, PAGE, PROT_READ);
        mprotect(block + PURGED, PAGE, PROT_READ | PROT_WRITE);
    }
    free(block);
    return unused;
}

/* In a child: whether the block that never changes is whole. */
static int look(void *unused) {
    (void)unused;
    for (size_t i = 0; i < WORDS; i += 64)
        if (still[i] != i * 31)
            return 1;
    return 0;
}

static void await(pid_t child) {
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        wrong_children++;
}

static void make_children(void) {
    static char stack[1 << 16] __attribute__((aligned(16)));
    pid_t child = fork();
    if (child == 0)
        _exit(look(NULL));
    await(child);
    child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(look(NULL));
    await(child);
    child = clone(look, stack + sizeof stack, SIGCHLD, NULL);
    await(child);
    child = vfork();
    if (child == 0)
        _exit(look(NULL));
    await(child);
}

/* A thread on a stack of ours: the kernel clears a word there when it ends. */
static void make_thread(void) {
    static char *stack;
    pthread_attr_t attributes;
    pthread_t thread;
    if (!stack)
        stack = (char *)make_block();
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, 1 << 20);
    if (pthread_create(&thread, &attributes, (void *(*)(void *))look, NULL) == 0)
        pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

int main(void) {
    still = make_block();
    for (size_t i = 0; i < WORDS; i++)
        still[i] = i * 31;
    pthread_t threads[WRITERS + 1];
    for (size_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_words, (void *)(i + 1));
    pthread_create(&threads[WRITERS], NULL, throw_away, NULL);
    unsigned long families = 0;
    do {
        make_children();
        for (int i = 0; i < 20; i++)
            make_thread();
        families++;
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (poll(&input, 1, 1) > 0)
            __atomic_store_n(&input_ended, 1, __ATOMIC_RELAXED);
    } while (!input_ended);
    for (size_t i = 0; i < WRITERS + 1; i++)
        pthread_join(threads[i], NULL);
    /* What the kernel refuses a process of several threads. A thread that was joined is one for some microseconds yet. */
    int alone = 0;
    for (int tries = 0; !alone && tries < 2000; tries++) {
        alone = unshare(CLONE_NEWUSER) == 0;
        if (!alone)
            usleep(1000);
    }
    fprintf(stderr, "%lu families\n", families);
    printf("%lu words, %lu zeroes and %lu children wrong; %s\n", wrong_words, wrong_zeroes, wrong_children,
           alone ? "alone" : "not alone");
    return look(NULL);
}
