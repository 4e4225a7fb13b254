/* Random updates of a table, of its begin far more often than of its end, and of a smaller table beside it, evenly. */
#include "kernel.h"

int main(int count, char **words) {
    size_t updates = argument(count, words, 1, 25000000), large = 16 << 20, even = 2 << 20;
    uint64_t state = 7, result = 0;
    uint64_t *skewed = ARRAY(uint64_t, large);
    uint64_t *uniform = ARRAY(uint64_t, even);
    for (size_t i = 0; i < large; i++)
        skewed[i] = i;
    for (size_t i = 0; i < even; i++)
        uniform[i] = i;
    double begin = seconds();
    for (size_t update = 0; update < updates; update++) {
        skewed[skewed_below(&state, large)] ^= update;
        if (update % 4 == 0)
            uniform[below(&state, even)] ^= update;
    }
    for (size_t i = 0; i < large; i++)
        result += skewed[i];
    for (size_t i = 0; i < even; i++)
        result += uniform[i];
    return finish("updates", result, begin);
}
