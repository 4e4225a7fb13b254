/* Reads at random from two arrays at known addresses, 19 times in 20 from the first, until the
 * reading has used the processor time given in milliseconds. With a second argument a forked child does
 * the reading and its parent waits. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64 << 20 };

static uint64_t *array(uintptr_t address)
{
    void *p = mmap((void *)address, BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != (void *)address) {
        perror("mmap");
        exit(2);
    }
    memset(p, 1, BYTES);
    return p;
}

static double used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    uint64_t *hot = array(0x100000000000), *cold = array(0x110000000000);
    if (argc > 2) {
        pid_t child = fork();
        if (child > 0) {
            waitpid(child, NULL, 0);
            return 0;
        }
    }
    double limit = used() + (argc > 1 ? atof(argv[1]) : 500);
    uint64_t x = 88172645463325252, sum = 0;
    while (used() < limit) {
        for (int i = 0; i < 100000; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            uint64_t *from = x % 20 ? hot : cold;
            sum += from[(x >> 20) % (BYTES / sizeof *hot)];
            /* Each read waits for the one before: overlapped, the rarer array would take more of
             * the time than of the reads, because its page tables are cold too. */
            x ^= sum & 0xff00;
        }
    }
    return sum == 42;
}
