/* A program with a library in C++; says what the build system found out about the compiler. */
#include <stdio.h>
#include <stdlib.h>

#include "shapes.h"

#if defined(HAVE_CONFIG_H)
#include "config.h"
#endif

int main(void) {
    char *text = malloc(32);
    if (!text)
        return 1;
    snprintf(text, 32, "sum %ld", shapes_sum(1000));
    puts(text);
#if defined(HAVE_CONFIG_H) && !HAVE_MALLOC
    puts("configure thinks that malloc is broken");
#endif
#if defined(HAVE_CONFIG_H) && defined(HAVE_SURELY_NO_FUNCTION_OF_THIS_NAME)
    puts("configure finds functions that do not exist");
#endif
    free(text);
    return 0;
}
