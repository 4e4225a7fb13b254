/* Product of two square matrices, row by row: the second one is read once for each row of the first. */
#include "kernel.h"

int main(int count, char **words) {
    size_t n = argument(count, words, 1, 1024);
    uint64_t state = 1, result = 0;
    double *a = ARRAY(double, n * n);
    double *b = ARRAY(double, n * n);
    double *c = ARRAY(double, n * n);
    for (size_t i = 0; i < n * n; i++) {
        a[i] = (double)below(&state, 8);
        b[i] = (double)below(&state, 8);
    }
    double begin = seconds();
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    for (size_t i = 0; i < n * n; i++)
        result += (uint64_t)c[i];
    return finish("matrix", result, begin);
}
