// Preloaded before an allocator: calls backtrace() of four callers at each allocation and discards the
// result. That is the cost of the calling context where nothing was built into the program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stddef.h>

enum { CALLERS = 4 };

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);

// The first backtrace() of a process allocates.
static _Thread_local int unwinding;

// Before the first allocation, which comes before every constructor.
static void find_next(void) {
    next_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
}

static void look_at_callers(void) {
    if (!next_malloc)
        find_next();
    if (unwinding)
        return;
    unwinding = 1;
    // One more: the first frame is the function that calls.
    void *frames[CALLERS + 1];
    backtrace(frames, CALLERS + 1);
    unwinding = 0;
}

void *malloc(size_t bytes) {
    look_at_callers();
    return next_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    look_at_callers();
    return next_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes) {
    look_at_callers();
    return next_realloc(block, bytes);
}
