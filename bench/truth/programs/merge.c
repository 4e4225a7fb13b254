/* Sorts an index of records by merging, from the bottom up: two arrays of keys change roles; the records are read in the end. */
#include "kernel.h"

int main(int count, char **words) {
    size_t records = argument(count, words, 1, 1 << 22), width = 2;
    uint64_t state = 6, result = 0;
    uint64_t *record = ARRAY(uint64_t, records * width);
    uint64_t *keys = ARRAY(uint64_t, records);
    uint64_t *merged = ARRAY(uint64_t, records);
    for (size_t i = 0; i < records; i++) {
        keys[i] = (uint64_t)draw(&state) << 32 | i;
        record[i * width] = keys[i] % 1000;
    }
    double begin = seconds();
    for (size_t run = 1; run < records; run *= 2) {
        for (size_t start = 0; start < records; start += 2 * run) {
            size_t a = start, b = start + run < records ? start + run : records, to = start;
            size_t a_end = b, b_end = start + 2 * run < records ? start + 2 * run : records;
            while (a < a_end || b < b_end)
                merged[to++] = b >= b_end || (a < a_end && keys[a] <= keys[b]) ? keys[a++] : keys[b++];
        }
        uint64_t *old = keys;
        keys = merged;
        merged = old;
    }
    for (size_t i = 0; i < records; i++)
        result += record[(keys[i] & 0xffffffff) * width] * (i % 7);
    return finish("merge", result, begin);
}
