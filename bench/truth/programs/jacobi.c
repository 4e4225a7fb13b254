/* Heat on a plane by Jacobi's iteration: two grids that change roles, a grid of materials that is read, and snapshots. */
#include "kernel.h"

int main(int count, char **words) {
    size_t rounds = argument(count, words, 1, 150), width = 2048, height = 2048;
    uint64_t state = 2, result = 0;
    float *snapshots = ARRAY(float, width * height * 6);
    float *now = ARRAY(float, width * height);
    float *next = ARRAY(float, width * height);
    float *material = ARRAY(float, width * height);
    for (size_t i = 0; i < width * height; i++) {
        now[i] = (float)below(&state, 1000);
        material[i] = 0.125f * (float)(1 + below(&state, 2));
    }
    double begin = seconds();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t y = 1; y < height - 1; y++)
            for (size_t x = 1; x < width - 1; x++) {
                size_t i = y * width + x;
                float around = now[i - 1] + now[i + 1] + now[i - width] + now[i + width];
                next[i] = now[i] + material[i] * (around - 4 * now[i]);
            }
        float *old = now;
        now = next;
        next = old;
        if (round % (rounds / 6 + 1) == 0)
            memcpy(snapshots + round / (rounds / 6 + 1) * width * height, now, width * height * sizeof *now);
    }
    for (size_t i = 0; i < width * height; i++)
        result += (uint64_t)(int64_t)now[i];
    return finish("jacobi", result, begin);
}
