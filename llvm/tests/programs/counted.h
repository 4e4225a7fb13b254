#include <stddef.h>

enum { WORDS = 1 << 17 };
typedef volatile long word;
typedef void reader(word *from);

/* Reads each word twice. */
reader read_in_library;
