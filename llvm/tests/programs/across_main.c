/* Prints the 2 MiB that hold the block of each caller; one of the callers is in a file that another compiler built. */
#include <stdio.h>
#include <stdlib.h>

void *a(size_t bytes), *b(size_t bytes), *plain(size_t bytes);

int main(void) {
    void *blocks[] = {a(3001), b(3001), plain(3001)};
    const char *names[] = {"a", "b", "plain"};
    for (int i = 0; i < 3; ++i)
        printf("%s %lx\n", names[i], (unsigned long)blocks[i] >> 21);
    for (int i = 0; i < 3; ++i)
        free(blocks[i]);
    return 0;
}
