/* Two callers of one wrapper in another file. Prints whether the blocks hold the right content, and
 * the 2 MiB that hold each (see main.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wrapper.h"

static char *first(void) { return checked(3001, 'a', 'b', 'c', 'd', 'e', 'f'); }
static char *second(void) { return checked(3001, 'u', 'v', 'w', 'x', 'y', 'z'); }

int main(void) {
    char *one = first(), *two = second();
    puts(memcmp(one, "abcdefabc", 9) || memcmp(two, "uvwxyzuvw", 9) ? "contents wrong" : "contents right");
    printf("first %lx\nsecond %lx\n", (unsigned long)one >> 21, (unsigned long)two >> 21);
    free(one);
    free(two);
    return 0;
}
