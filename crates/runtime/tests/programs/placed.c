/* Makes blocks at one site, and prints the memory policy of the last one before and after a line of input,
 * with a few more allocations of that site in between; -1 where the kernel has no policies. */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 4 << 20, LITTLE = 40 << 10 };

__attribute__((noinline)) static char *make(size_t bytes) { return malloc(bytes); }

static int policy(char *block) {
    int mode = -1;
    syscall(SYS_get_mempolicy, &mode, NULL, 0, block, MPOL_F_ADDR);
    return mode;
}

int main(void) {
    char *block = NULL;
    /* One call, so that it is one site: sizes that a compiler cannot tell do not become two. */
    static volatile size_t sizes[] = {BLOCK, BLOCK, BLOCK, BLOCK, LITTLE, LITTLE, LITTLE};
    for (int i = 0; i < 7; i++) {
        if (i == 4) {
            printf("%d\n", policy(block));
            fflush(stdout);
            getchar();
        }
        char *made = make(sizes[i]);
        memset(made, 1, LITTLE);
        if (i < 4)
            block = made;
    }
    printf("%d\n", policy(block));
    return 0;
}
