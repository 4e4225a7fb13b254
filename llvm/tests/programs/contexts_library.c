#include <stdlib.h>

__attribute__((noinline)) void *exported(int n) { return malloc(n); }
static __attribute__((noinline)) void *one(int n) { return exported(n + 1); }
static __attribute__((noinline)) void *other(int n) { return exported(n + 2); }

int many(int n) {
    int found = 0;
    for (int i = 0; i < n; ++i) {
        void *a = one(i), *b = other(i);
        found += a != b;
        free(a);
        free(b);
    }
    return found;
}
