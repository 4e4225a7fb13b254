/* A table that fits in the cache and is read all the time, beside a long stream and a table that does not fit. */
#include "kernel.h"

int main(int count, char **words) {
    size_t rounds = argument(count, words, 1, 8), stream_length = 12 << 20, hot_length = 1 << 18, large_length = 2 << 20;
    uint64_t state = 8, result = 0;
    uint64_t *stream = ARRAY(uint64_t, stream_length);
    uint64_t *large = ARRAY(uint64_t, large_length);
    uint64_t *hot = ARRAY(uint64_t, hot_length);
    for (size_t i = 0; i < stream_length; i++)
        stream[i] = draw(&state);
    for (size_t i = 0; i < large_length; i++)
        large[i] = draw(&state);
    for (size_t i = 0; i < hot_length; i++)
        hot[i] = draw(&state);
    double begin = seconds();
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < stream_length; i++) {
            result += hot[stream[i] % hot_length] ^ hot[result % hot_length];
            if (i % 16 == 0)
                result += large[(stream[i] * 2654435761u + round) % large_length];
        }
    return finish("hot_and_stream", result, begin);
}
