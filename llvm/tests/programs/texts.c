/* Texts that the C library would allocate: right whatever their length, and each site's in its own
 * place. Prints the texts' sums and the 2 MiB that hold them (see main.c). */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static char *formatted(const char *text, int width) {
    char *result = NULL;
    int length = asprintf(&result, "%s %0*d", text, width, 7);
    return length >= 0 && strlen(result) == (size_t)length ? result : NULL;
}

static char *from_list(const char *format, ...) {
    char *result = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&result, format, arguments);
    va_end(arguments);
    return length >= 0 && strlen(result) == (size_t)length ? result : NULL;
}

static wchar_t *wide(void) { return wcsdup(L"wide"); }

static unsigned long sum(const char *text) {
    unsigned long result = 5381;
    while (text && *text)
        result = result * 33 + (unsigned char)*text++;
    return result;
}

int main(int count, char **words) {
    /* Around the length up to which a text is formatted once. */
    static const int widths[] = {1, 509, 510, 511, 512, 5000};
    for (int i = 0; i < 6; ++i) {
        char *first = formatted("x", widths[i]), *second = from_list("%*d %s", widths[i], i, "y");
        printf("%d %lx %lx\n", widths[i], sum(first), sum(second));
        free(first);
        free(second);
    }
    char *nothing = NULL;
    /* No wide character of the C locale. */
    printf("failed %d\n", asprintf(&nothing, "%ls", L"\x1f600"));
    char *kept = formatted("kept", 3), *list = from_list("%s", kept);
    wchar_t *copy = wide();
    printf("%s %s %ls\n", kept, list, copy);
    if (count > 1 && !strcmp(words[1], "places"))
        printf("formatted %lx\nfrom_list %lx\nwide %lx\n", (unsigned long)kept >> 21,
               (unsigned long)list >> 21, (unsigned long)copy >> 21);
    free(kept);
    free(list);
    free(copy);
    return 0;
}
