/* Sparse matrix times vector, rows compressed: values and columns are streams, the vector is gathered from. */
#include "kernel.h"

int main(int count, char **words) {
    size_t rounds = argument(count, words, 1, 12), rows = 1 << 21, in_row = 6;
    uint64_t state = 3, result = 0;
    uint64_t *begins = ARRAY(uint64_t, rows + 1);
    uint32_t *columns = ARRAY(uint32_t, rows * in_row);
    float *values = ARRAY(float, rows * in_row);
    float *x = ARRAY(float, rows);
    float *y = ARRAY(float, rows);
    for (size_t row = 0; row < rows; row++) {
        begins[row + 1] = begins[row] + in_row;
        for (size_t i = begins[row]; i < begins[row + 1]; i++) {
            columns[i] = (uint32_t)below(&state, rows);
            values[i] = 0.125f * (float)below(&state, 2);
        }
        x[row] = (float)below(&state, 16);
    }
    double begin = seconds();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t row = 0; row < rows; row++) {
            float sum = 1;
            for (uint64_t i = begins[row]; i < begins[row + 1]; i++)
                sum += values[i] * x[columns[i]];
            y[row] = sum;
        }
        float *old = x;
        x = y;
        y = old;
    }
    for (size_t row = 0; row < rows; row++)
        result += (uint64_t)x[row];
    return finish("spmv", result, begin);
}
