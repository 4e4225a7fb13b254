#include "counted.h"

void read_in_library(word *from) {
    for (int i = 0; i < 2 * WORDS; i++)
        (void)from[i % WORDS];
}
