#include "shapes.h"

extern "C" long shapes_sum(int count) {
    // Volatile: the optimiser may remove an unused block.
    long *volatile numbers = new long[static_cast<unsigned>(count)];
    long sum = 0;
    for (int i = 0; i < count; ++i)
        sum += numbers[i] = i;
    delete[] numbers;
    return sum;
}
