// Contexts that a check of the stack cannot distinguish: a function whose frame grows by its argument, called
// from two places with the same stack pointer, where the second caller's frame still holds the first one's
// return address.
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 200000 };

static __attribute__((noinline)) void *allocate(void) {
    void *block = malloc(24);
    __asm__ volatile("" ::: "memory");
    return block;
}

// Calls `allocate` with the same stack pointer from every caller.
static __attribute__((noinline)) void *from(uintptr_t depth) {
    volatile char here = 0;
    volatile char *gap = alloca((size_t)((uintptr_t)&here - depth) & ~(size_t)15);
    __asm__ volatile("" ::"r"(gap) : "memory");
    void *block = allocate();
    __asm__ volatile("" ::"r"(gap) : "memory");
    return block;
}

static __attribute__((noinline)) void *near(uintptr_t depth) {
    volatile char gap[16];
    __asm__ volatile("" ::"r"(gap) : "memory");
    void *block = from(depth);
    __asm__ volatile("" ::"r"(gap) : "memory");
    return block;
}

static __attribute__((noinline)) void *far(uintptr_t depth) {
    volatile char gap[528];
    __asm__ volatile("" ::"r"(gap) : "memory");
    void *block = from(depth);
    __asm__ volatile("" ::"r"(gap) : "memory");
    return block;
}

// One call from nearby and as many as wanted from the distant caller, in a thread: of the first stack more words are checked.
static void *distant(void *unused) {
    char here;
    uintptr_t depth = ((uintptr_t)&here & ~(uintptr_t)4095) - 2048;
    free(near(depth));
    for (int call = 0; call < CALLS; call++) free(far(depth));
    return unused;
}

int main(int count, char **words) {
    char here;
    uintptr_t depth = ((uintptr_t)&here & ~(uintptr_t)4095) - 2048;
    pthread_t thread;
    if (count > 1) {
        if (pthread_create(&thread, NULL, distant, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    for (int call = 0; count == 1 && call < CALLS; call++) free(near(depth));
    puts(words[0] ? "done" : "");
    return 0;
}
