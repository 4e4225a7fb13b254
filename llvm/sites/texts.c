// Entry points of functions that allocate the text that they return: the asprintf family and wcsdup.
//
// The C library allocates such a text itself, where the site is not known. Here it is written
// into a block of the site; without the runtime the C library's own function is called.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "heap.h"

// For hardened programs (_FORTIFY_SOURCE); the C library's headers declare them only there.
int __vsnprintf_chk(char *text, size_t bytes, int flag, size_t room, const char *format,
                    va_list arguments);
int __vasprintf_chk(char **place, int flag, const char *format, va_list arguments);

// Longest text, with its end, that is formatted once instead of twice.
enum { SHORT_BYTES = 512 };

// Not a hardened call.
enum { UNCHECKED = -1 };

static int format_into(char *text, size_t bytes, int flag, const char *format, va_list arguments) {
    if (flag == UNCHECKED)
        return vsnprintf(text, bytes, format, arguments);
    return __vsnprintf_chk(text, bytes, flag, bytes, format, arguments);
}

static int format_text(struct isotherm_site *site, char **place, int flag, const char *format,
                       va_list arguments) {
    const struct isotherm_heap_route *route = isotherm_heap_route_of(site);
    if (route == &isotherm_plain_heap)
        return flag == UNCHECKED ? vasprintf(place, format, arguments)
                                 : __vasprintf_chk(place, flag, format, arguments);
    char short_text[SHORT_BYTES];
    va_list again;
    va_copy(again, arguments);
    int length = format_into(short_text, sizeof(short_text), flag, format, arguments);
    size_t bytes = (size_t)length + 1;
    char *text = length < 0 ? NULL : route->malloc(bytes, site);
    if (text && bytes <= sizeof(short_text))
        memcpy(text, short_text, bytes);
    else if (text)
        format_into(text, bytes, flag, format, again);
    va_end(again);
    if (!text)
        return -1;
    *place = text;
    return length;
}

ISOTHERM_ENTRY int isotherm_asprintf(struct isotherm_site *site, char **place, const char *format,
                                     ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = format_text(site, place, UNCHECKED, format, arguments);
    va_end(arguments);
    return length;
}

ISOTHERM_ENTRY int isotherm_asprintf_chk(struct isotherm_site *site, char **place, int flag,
                                         const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = format_text(site, place, flag, format, arguments);
    va_end(arguments);
    return length;
}

ISOTHERM_ENTRY int isotherm_vasprintf(char **place, const char *format, va_list arguments,
                                      struct isotherm_site *site) {
    return format_text(site, place, UNCHECKED, format, arguments);
}

ISOTHERM_ENTRY int isotherm_vasprintf_chk(char **place, int flag, const char *format,
                                          va_list arguments, struct isotherm_site *site) {
    return format_text(site, place, flag, format, arguments);
}

ISOTHERM_ENTRY wchar_t *isotherm_wcsdup(const wchar_t *text, struct isotherm_site *site) {
    size_t bytes = (wcslen(text) + 1) * sizeof(*text);
    wchar_t *copy = isotherm_heap_route_of(site)->malloc(bytes, site);
    return copy ? memcpy(copy, text, bytes) : NULL;
}
