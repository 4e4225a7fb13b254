// Hot and cold data from several places: a plain call, a wrapper, an inlined function, instances of a template, operator new.
#include <cstdio>
#include <cstdlib>

constexpr int Words = 1 << 18;

static void *checked(size_t Bytes) {
    void *Block = malloc(Bytes);
    if (!Block)
        abort();
    return Block;
}

__attribute__((noinline)) static int *hot() { return static_cast<int *>(checked(Words * sizeof(int))); }
__attribute__((noinline)) static int *cold() { return static_cast<int *>(checked(4 * Words * sizeof(int))); }
static inline int *inlined() { return static_cast<int *>(calloc(Words, sizeof(int))); }
__attribute__((noinline)) static long *array() { return new long[Words]; }
template <typename T> __attribute__((noinline)) T *instance() { return static_cast<T *>(malloc(Words * sizeof(T))); }

int main() {
    int *Hot = hot(), *Cold = cold(), *Inlined = inlined();
    long *Array = array();
    volatile short *Shorts = instance<short>();
    volatile double *Doubles = instance<double>();
    for (int Round = 0; Round < 20; ++Round)
        for (int I = 0; I < Words; ++I)
            reinterpret_cast<volatile int *>(Hot)[I] = I;
    for (int I = 0; I < 4 * Words; I += 1024)
        reinterpret_cast<volatile int *>(Cold)[I] = I;
    for (int I = 0; I < Words; ++I) {
        reinterpret_cast<volatile int *>(Inlined)[I] = I;
        reinterpret_cast<volatile long *>(Array)[I] = I;
        Shorts[I] = 1;
        Doubles[I] = Shorts[I];
    }
    std::printf("done %d\n", Hot[7]);
    // MemProf's runtime of LLVM 19 forgets large blocks that are left at the end.
    free(Hot);
    free(Cold);
    free(Inlined);
    delete[] Array;
    free(const_cast<short *>(Shorts));
    free(const_cast<double *>(Doubles));
}
