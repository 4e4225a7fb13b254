// Works on large memory in every way that could lose a page that the emulated slow tier has taken away. Prints
// the same lines whether it runs alone or with libisotherm.so, and fails at the first wrong byte.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 1 << 20, THREADS = 4 };

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno);     \
            fflush(stdout);                                                      \
            _exit(1);                                                            \
        }                                                                        \
    } while (0)

extern char **environ;

static void *count_up(void *argument) {
    uint64_t thread = (uintptr_t)argument;
    size_t words = 2 * MIB / sizeof(uint64_t);
    uint64_t *data = calloc(words, sizeof *data);
    CHECK(data);
    for (uint64_t round = 0; round < 12; round++)
        for (size_t i = 0; i < words; i++) {
            CHECK(data[i] == (round ? round << 32 | thread << 24 | i : 0));
            data[i] = (round + 1) << 32 | thread << 24 | i;
        }
    free(data);
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&ids[i], NULL, count_up, (void *)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(ids[i], NULL));
    puts("threads");
}

static void system_calls(void) {
    unsigned char *buffer = malloc(4 * MIB);
    int zero = open("/dev/zero", 0), pair[2];
    CHECK(buffer && zero >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    for (int round = 1; round <= 5; round++) {
        memset(buffer, round, 4 * MIB);
        CHECK(read(zero, buffer, 2 * MIB) == 2 * MIB);
        CHECK(buffer[0] == 0 && buffer[2 * MIB - 1] == 0 && buffer[2 * MIB] == round);
        for (int i = 0; i < 200; i++) {
            unsigned char *place = buffer + (size_t)(i * 5) * PAGE;
            CHECK(send(pair[0], buffer + 3 * MIB, 2 * PAGE, 0) == 2 * PAGE);
            CHECK(recv(pair[1], place, 2 * PAGE, MSG_WAITALL) == 2 * PAGE);
            CHECK(place[0] == round && place[2 * PAGE - 1] == round);
        }
    }
    close(zero), close(pair[0]), close(pair[1]);
    free(buffer);
    puts("system calls");
}

static void fill(uint64_t *data, size_t pages, uint64_t base) {
    for (size_t i = 0; i < pages; i++)
        data[i * PAGE / 8] = base + i;
}

static void check(const uint64_t *data, size_t pages, uint64_t base) {
    for (size_t i = 0; i < pages; i++)
        CHECK(data[i * PAGE / 8] == base + i);
}

static void forks(void) {
    size_t pages = 1024;
    uint64_t *data = malloc(pages * PAGE);
    CHECK(data);
    fill(data, pages, 1);
    for (uint64_t round = 0; round < 8; round++) {
        check(data, pages, round + 1);
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            for (uint64_t turn = 0; turn < 4; turn++) {
                check(data, pages, round + 1 + turn);
                fill(data, pages, round + 2 + turn);
            }
            _exit(0);
        }
        fill(data, pages, round + 2);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        char *arguments[] = {"true", NULL};
        CHECK(!posix_spawnp(&child, "true", NULL, NULL, arguments, environ));
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        check(data, pages, round + 2);
    }
    free(data);
    puts("forks");
}

static void mappings(void) {
    size_t pages = 1024, bytes = pages * PAGE;
    for (int round = 0; round < 4; round++) {
        uint64_t *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(data != MAP_FAILED);
        check(data, 0, 0);
        fill(data, pages, 7);
        check(data, pages, 7);
        CHECK(!madvise(data, bytes / 2, MADV_DONTNEED));
        for (size_t i = 0; i < pages / 2; i++)
            CHECK(data[i * PAGE / 8] == 0);
        fill(data, pages / 2, 7);
        check(data, pages, 7);
        CHECK(!mprotect(data, bytes, PROT_READ));
        check(data, pages, 7);
        CHECK(!mprotect(data, bytes, PROT_READ | PROT_WRITE));
        data = mremap(data, bytes, 3 * bytes, MREMAP_MAYMOVE);
        CHECK(data != MAP_FAILED);
        check(data, pages, 7);
        fill(data, 3 * pages, 9);
        check(data, 3 * pages, 9);
        CHECK(!munmap(data + bytes / 8, bytes));
        check(data, pages, 9);
        check(data + 2 * bytes / 8, pages, 9 + 2 * pages);
        CHECK(!munmap(data, 3 * bytes));
    }
    puts("mappings");
}

static void reuse(void) {
    for (int round = 0; round < 200; round++) {
        size_t bytes = (size_t)(round % 7 + 1) * MIB / 4;
        unsigned char *data = calloc(1, bytes);
        CHECK(data);
        for (size_t i = 0; i < bytes; i += 509)
            CHECK(data[i] == 0);
        memset(data, 0xa5, bytes);
        data = realloc(data, 2 * bytes);
        CHECK(data && data[0] == 0xa5 && data[bytes - 1] == 0xa5);
        free(data);
    }
    puts("reuse");
}

static void closed_descriptors(void) {
    size_t pages = 512;
    uint64_t *data = malloc(pages * PAGE);
    CHECK(data);
    fill(data, pages, 3);
    for (int descriptor = 3; descriptor < 2048; descriptor++)
        close(descriptor);
    for (int round = 0; round < 50; round++)
        check(data, pages, 3);
    CHECK(open("/dev/null", 0) == 3);
    free(data);
    puts("closed descriptors");
}

static void *work(void *argument) {
    for (volatile int i = 0; i < 20000; i++) {
    }
    return argument;
}

/* Threads on a stack of ours, one after the other: when one ends the kernel clears a word of it, and
 * a thread that joins waits for that for ever if the word was away. */
static void own_stacks(void) {
    pthread_attr_t attributes;
    char *stack = malloc(MIB);
    CHECK(stack && !pthread_attr_init(&attributes));
    CHECK(!pthread_attr_setstack(&attributes, stack, MIB));
    alarm(120);
    for (int i = 0; i < 5000; i++) {
        pthread_t thread;
        void *answer = NULL;
        CHECK(!pthread_create(&thread, &attributes, work, stack));
        CHECK(!pthread_join(thread, &answer) && answer == stack);
    }
    alarm(0);
    free(stack);
    puts("own stacks");
}

int main(void) {
    threads();
    own_stacks();
    system_calls();
    forks();
    mappings();
    reuse();
    closed_descriptors();
    return 0;
}
