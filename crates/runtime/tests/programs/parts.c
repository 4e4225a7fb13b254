/* Allocates large and small blocks as its arguments say, writes all of each, and checks what it reads again:
 *   malloc calloc memalign map     an array of 16 MiB
 *   realloc                        makes the last array 32 MiB
 *   shrink                         makes it 16 KiB
 *   free unmap                     gives it back
 *   small                          8 MiB in blocks of 16 KiB, from the call that makes the arrays
 *   fork                           the child goes on, and the parent waits for it
 *   storm                          four threads allocate, resize and free blocks of 16 KiB to 1 MiB
 *   handler                        the same with large blocks in one thread, which a signal handler interrupts that allocates and
 *                                  frees large ones
 * It prints a line for each word. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, ARRAY = 16 * MIB, WORD = sizeof(uint64_t), TURNS = 25000, LIVE = 16 };

static char *array;
static size_t bytes;

static void fail(const char *why) {
    dprintf(1, "failed: %s\n", why);
    _exit(1);
}

/* The one call of malloc: blocks of every size are of one site. */
__attribute__((noinline)) static void *take(size_t size) {
    void *block = malloc(size);
    if (!block)
        fail("no memory");
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

static void fill(char *block, size_t from, size_t to, uint64_t seed) {
    for (size_t at = from; at < to; at += WORD)
        *(uint64_t *)(block + at) = seed ^ at;
}

static void check(const char *block, size_t to, uint64_t seed) {
    for (size_t at = 0; at < to; at += WORD)
        if (*(const uint64_t *)(block + at) != (seed ^ at))
            fail("wrong contents");
}

static void begin(void *block) {
    if (!block || block == MAP_FAILED)
        fail("no memory");
    array = block;
    bytes = ARRAY;
    fill(array, 0, bytes, 7);
}

static void resize(size_t size) {
    array = realloc(array, size);
    if (!array)
        fail("no memory");
    check(array, size < bytes ? size : bytes, 7);
    if (size > bytes)
        fill(array, bytes, size, 7);
    bytes = size;
}

static void zeroed(void) {
    char *block = calloc(ARRAY / 64, 64);
    if (!block)
        fail("no memory");
    for (size_t at = 0; at < ARRAY; at += WORD)
        if (*(uint64_t *)(block + at))
            fail("no zeroes");
    begin(block);
}

static void aligned(void) {
    void *block = NULL;
    if (posix_memalign(&block, 4 * MIB, ARRAY) || (uintptr_t)block % (4 * MIB))
        fail("wrong alignment");
    begin(block);
}

static void small(void) {
    for (size_t done = 0; done < 8 * MIB; done += 16 * KIB)
        fill(take(16 * KIB), 0, 16 * KIB, 1);
}

static unsigned next(unsigned *random) {
    return *random = *random * 1664525u + 1013904223u, *random >> 8;
}

/* From `least` to a hundred times as much. */
static size_t any_size(unsigned *random, size_t least) {
    return ((least << next(random) % 7) + next(random) % (64 * KIB)) / WORD * WORD;
}

/* Only the ends of each page are written and read: the storm is about places. */
static void mark(char *block, size_t size, uint64_t seed) {
    for (size_t at = 0; at < size; at += 2048)
        *(uint64_t *)(block + at / WORD * WORD) = seed ^ at;
}

static void check_marks(const char *block, size_t size, uint64_t seed) {
    for (size_t at = 0; at < size; at += 2048)
        if (*(const uint64_t *)(block + at / WORD * WORD) != (seed ^ at))
            fail("wrong contents");
}

static void storm_of(uintptr_t number, size_t least) {
    struct {
        char *block;
        size_t size;
        uint64_t seed;
    } live[LIVE] = {0};
    unsigned random = (unsigned)number;
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned at = next(&random) % LIVE;
        size_t size = any_size(&random, least);
        if (live[at].block && next(&random) % 3 == 0) {
            size_t same = size < live[at].size ? size : live[at].size;
            live[at].block = realloc(live[at].block, size);
            check_marks(live[at].block, same, live[at].seed);
        } else {
            if (live[at].block)
                check_marks(live[at].block, live[at].size, live[at].seed);
            free(live[at].block);
            live[at].block = take(size);
            live[at].seed = ((uint64_t)next(&random) << 20) | number;
        }
        live[at].size = size;
        if (malloc_usable_size(live[at].block) < size)
            fail("too short");
        mark(live[at].block, size, live[at].seed);
    }
    for (int at = 0; at < LIVE; at++)
        free(live[at].block);
}

static void *storm(void *number) {
    storm_of((uintptr_t)number, 16 * KIB);
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    for (uintptr_t i = 0; i < 4; i++)
        if (pthread_create(&all[i], NULL, storm, (void *)(i + 1)))
            fail("no thread");
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

static char *volatile of_handler;
static volatile unsigned handled;

static void on_signal(int number) {
    (void)number;
    int before = errno;
    free(of_handler);
    of_handler = take(128 * KIB);
    memset(of_handler, 1, 128 * KIB);
    handled++;
    errno = before;
}

static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    storm_of(9, 64 * KIB);
    setitimer(ITIMER_REAL, &never, NULL);
    free(of_handler);
    if (handled < 10)
        fail("no signals");
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "malloc") == 0) {
            begin(take(ARRAY));
        } else if (strcmp(word, "calloc") == 0) {
            zeroed();
        } else if (strcmp(word, "memalign") == 0) {
            aligned();
        } else if (strcmp(word, "map") == 0) {
            begin(mmap(NULL, ARRAY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        } else if (strcmp(word, "realloc") == 0) {
            resize(32 * MIB);
        } else if (strcmp(word, "shrink") == 0) {
            resize(16 * KIB);
        } else if (strcmp(word, "free") == 0) {
            check(array, bytes, 7);
            free(array);
        } else if (strcmp(word, "unmap") == 0) {
            check(array, bytes, 7);
            munmap(array, bytes);
        } else if (strcmp(word, "small") == 0) {
            small();
        } else if (strcmp(word, "fork") == 0) {
            pid_t child = fork();
            int status = 0;
            if (child > 0 && (waitpid(child, &status, 0) < 0 || status))
                fail("child");
            if (child > 0)
                break;
        } else if (strcmp(word, "storm") == 0) {
            threads();
        } else if (strcmp(word, "handler") == 0) {
            interrupted();
        } else {
            return 2;
        }
        dprintf(1, "%s\n", word);
    }
    return 0;
}
