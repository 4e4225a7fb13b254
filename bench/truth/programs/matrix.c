/* Product of a few rows and a square matrix, which is read once for each row. */
#include "kernel.h"

int main(int count, char **words) {
    size_t rows = argument(count, words, 1, 160), n = 2048;
    uint64_t state = 1, result = 0;
    double *a = ARRAY(double, rows * n);
    double *b = ARRAY(double, n * n);
    double *c = ARRAY(double, rows * n);
    for (size_t i = 0; i < rows * n; i++)
        a[i] = (double)below(&state, 8);
    for (size_t i = 0; i < n * n; i++)
        b[i] = (double)below(&state, 8);
    double begin = seconds();
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    for (size_t i = 0; i < rows * n; i++)
        result += (uint64_t)c[i];
    return finish("matrix", result, begin);
}
