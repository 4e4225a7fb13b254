// Every edge case of the C and C++ allocation interface; prints the result of each.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <string>

static const char *error() {
    switch (errno) {
    case 0: return "none";
    case ENOMEM: return "ENOMEM";
    case EINVAL: return "EINVAL";
    default: return "another";
    }
}

#define OUTCOME(name, expression)                                                     \
    do {                                                                              \
        errno = 0;                                                                    \
        void *block = (expression);                                                   \
        printf("%s: %s, errno %s\n", name, block ? "block" : "null", error());        \
        free(block);                                                                  \
    } while (0)

static volatile size_t huge = PTRDIFF_MAX;
static volatile size_t half = SIZE_MAX / 2;

template <typename F> static void throws(const char *name, F f) {
    try {
        void *block = f();
        printf("%s: block %d\n", name, block != nullptr);
        ::operator delete(block);
    } catch (const std::bad_alloc &) {
        printf("%s: bad_alloc\n", name);
    }
}

static int handler_calls;
static void handler() {
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

static void alignments() {
    for (size_t alignment = 8; alignment <= (4u << 20); alignment *= 2) {
        void *block = nullptr;
        int answer = posix_memalign(&block, alignment, 100);
        printf("posix_memalign %zu: %d %d\n", alignment, answer, (int)((uintptr_t)block % alignment));
        memset(block, 1, 100);
        free(block);
        block = aligned_alloc(alignment, alignment);
        printf("aligned_alloc: %d\n", (int)((uintptr_t)block % alignment));
        free(block);
        block = ::operator new(24, std::align_val_t(alignment));
        printf("new aligned: %d\n", (int)((uintptr_t)block % alignment));
        ::operator delete(block, std::align_val_t(alignment));
    }
    void *block = &block;
    printf("posix_memalign 3: %d %d\n", posix_memalign(&block, 3, 8) == EINVAL, block == &block);
    printf("posix_memalign 0: %d\n", posix_memalign(&block, 0, 8) == EINVAL);
    printf("posix_memalign 4: %d\n", posix_memalign(&block, 4, 8) == EINVAL);
    printf("posix_memalign huge: %d\n", posix_memalign(&block, 64, huge) == ENOMEM);
    OUTCOME("memalign 24", memalign(24, 8));
    OUTCOME("memalign 0", memalign(0, 8));
    OUTCOME("memalign huge", memalign(64, huge));
    OUTCOME("aligned_alloc huge", aligned_alloc(64, huge));
    OUTCOME("valloc", valloc(1));
    OUTCOME("pvalloc", pvalloc(1));
    OUTCOME("pvalloc 0", pvalloc(0));
    OUTCOME("pvalloc most", pvalloc(SIZE_MAX));
}

static void reallocations() {
    char *block = (char *)realloc(nullptr, 10);
    strcpy(block, "isotherm");
    for (size_t bytes = 16; bytes < (64u << 20); bytes = bytes * 3 + 1) {
        block = (char *)realloc(block, bytes);
        if (strcmp(block, "isotherm") != 0 || malloc_usable_size(block) < bytes)
            printf("realloc lost its contents at %zu\n", bytes);
        memset(block + 9, 7, bytes - 9);
    }
    for (size_t bytes = 32u << 20; bytes >= 16; bytes /= 5) {
        block = (char *)realloc(block, bytes);
        if (strcmp(block, "isotherm") != 0)
            printf("realloc lost its contents at %zu\n", bytes);
    }
    errno = 0;
    void *failed = realloc(block, huge);
    printf("realloc huge: %d %s %s\n", failed == nullptr, error(), block);
    errno = 0;
    failed = reallocarray(block, half, 4);
    printf("reallocarray overflow: %d %s %s\n", failed == nullptr, error(), block);
    block = (char *)reallocarray(block, 10, 10);
    printf("reallocarray: %s\n", block);
    errno = 0;
    printf("realloc 0: %d %s\n", realloc(block, 0) == nullptr, error());
}

int main() {
    OUTCOME("malloc 0", malloc(0));
    OUTCOME("malloc huge", malloc(huge));
    OUTCOME("malloc most", malloc(huge + huge));
    OUTCOME("calloc 0", calloc(0, 8));
    OUTCOME("calloc overflow", calloc(half, 4));
    OUTCOME("calloc huge", calloc(1, huge));
    OUTCOME("realloc null 0", realloc(nullptr, 0));
    free(nullptr);
    errno = 7;
    free(malloc(100));
    printf("errno after free: %d\n", errno);
    void *first = malloc(0), *second = malloc(0);
    printf("malloc 0 twice: %d\n", first != second);
    free(first);
    free(second);
    printf("usable size of null: %zu\n", malloc_usable_size(nullptr));
    for (size_t bytes = 1; bytes < (16u << 20); bytes = bytes * 2 + 3) {
        char *zeroed = (char *)calloc(1, bytes);
        for (size_t i = 0; i < bytes; i++)
            if (zeroed[i]) {
                printf("calloc is not zero at %zu of %zu\n", i, bytes);
                break;
            }
        memset(zeroed, 0xff, bytes);
        free(zeroed);
    }
    alignments();
    reallocations();
    throws("new huge", [] { return ::operator new(huge); });
    throws("new[] huge", [] { return ::operator new[](huge); });
    throws("new aligned huge", [] { return ::operator new(huge, std::align_val_t(64)); });
    throws("new 0", [] { return ::operator new(0); });
    printf("nothrow huge: %d\n", ::operator new(huge, std::nothrow) == nullptr);
    printf("nothrow[] huge: %d\n", ::operator new[](huge, std::nothrow) == nullptr);
    printf("nothrow aligned huge: %d\n",
           ::operator new(huge, std::align_val_t(64), std::nothrow) == nullptr);
    std::set_new_handler(handler);
    throws("new with handler", [] { return ::operator new(huge); });
    printf("handler calls: %d\n", handler_calls);
    int *array = new int[1000];
    delete[] array;
    std::string *text = new std::string(1000, 'x');
    printf("%zu\n", text->size());
    delete text;
    char *copied = strdup("strdup");
    puts(copied);
    free(copied);
    malloc_trim(0);
    return 3;
}
