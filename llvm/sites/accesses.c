// Chooses the accesses of a program that are sampled (isotherm-cc --profile), and passes them to the runtime.
//
// Every thread skips through its accesses in random gaps, evenly from 1 to 2N-1, so N on the mean, and the
// first gap is drawn so that the very first access is sampled as often as any other: each with probability 1/N.
// With N = 1 every access is. Where the runtime has a cache filter, every access passes it here, because a call
// for each would cost more than all else.
//
// All of it may be called by a signal handler and by a thread that has just started: it allocates nothing and
// takes no lock. Without the runtime a thread calls it once.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isotherm_accesses.h"
#include "resolve.h"

// Weak: a statically linked program has no loader, and thus no runtime either.
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

#define ISOTHERM_THREAD __attribute__((visibility("hidden"), tls_model("initial-exec")))

// Word in the section that marks such a program for the tools; the linker always keeps it.
__attribute__((used, retain, section(ISOTHERM_ACCESS_SECTION))) static const uint32_t present =
    ISOTHERM_ACCESS_VERSION;

// Initial-exec, because a call for each stretch (which libraries would need otherwise) costs more than the
// rest; a library that is loaded later finds room for two words in the block of every thread.
extern __thread int64_t isotherm_countdown __asm__(ISOTHERM_COUNTDOWN) ISOTHERM_THREAD;
__thread int64_t isotherm_countdown;

// The state of a thread: its random numbers, 0 until its first sample; or, where the runtime filters, its
// filter.
static __thread union {
    uint64_t random;
    struct isotherm_filter *filter;
} own __attribute__((tls_model("initial-exec")));

// The runtime's answer, the same for all threads; the first is set before any thread has a filter.
static bool filters, counts_all;

static uint64_t (*note_accesses)(const void *const *addresses, size_t count);
static struct isotherm_filter *(*line_filter)(void);

// Threads so far; the number seeds each thread's random numbers, the same in every run.
static uint64_t threads;

// Before all other constructors of the module, which may count already.
__attribute__((constructor(101))) static void look_up(void) {
    if (!dlsym)
        return;
    line_filter = (struct isotherm_filter * (*)(void)) dlsym(NULL /* RTLD_DEFAULT */, ISOTHERM_FILTER_NAME);
    note_accesses = (uint64_t(*)(const void *const *, size_t))dlsym(NULL, ISOTHERM_NOTE_NAME);
}

// Counts accesses and returns N, or 0 where the process counts none.
static uint64_t note(const void *const *addresses, size_t count) {
    return note_accesses ? note_accesses(addresses, count) : 0;
}

// A function that the fast paths call preserves their registers, so that they save none.
#define RARE __attribute__((preserve_most, cold, noinline))

// Where the process counts none, now or later, the thread stops filtering.
RARE static void note_miss(const void *address) {
    if (!note(&address, 1))
        own.filter = NULL;
}

// Whether an access counts: not if its line is in its place, where it is afterwards; of the misses, the runtime
// wants a sample.
static inline void filter_access(struct isotherm_filter *filter, uint64_t mask, const void *address) {
    uint64_t line = (uintptr_t)address / ISOTHERM_LINE_BYTES;
    uint64_t *place = &filter->lines[line & mask];
    // Atomic, because threads share filters when there are more threads than filters.
    if (__builtin_expect(__atomic_load_n(place, __ATOMIC_RELAXED) == line, 1) || !address)
        return;
    __atomic_store_n(place, line, __ATOMIC_RELAXED);
    uint64_t left = __atomic_load_n(&filter->left, __ATOMIC_RELAXED);
    if (left)
        __atomic_store_n(&filter->left, left - 1, __ATOMIC_RELAXED);
    else
        note_miss(address);
}

// The filter must get each access, so the next stretch calls this function, too.
static inline void filter_each(struct isotherm_filter *filter, const void *const *addresses, uint64_t count) {
    for (uint64_t mask = filter->mask, number = 0; number < count; ++number)
        filter_access(filter, mask, addresses[number]);
    isotherm_countdown = 0;
}

static inline void filter_range(struct isotherm_filter *filter, const char *start, uint64_t lines) {
    for (uint64_t mask = filter->mask, number = 0; number < lines; ++number)
        filter_access(filter, mask, start + number * ISOTHERM_LINE_BYTES);
    isotherm_countdown = 0;
}

// A number from 0 to `bound` - 1, `bound` below 2^32. Xorshift (Marsaglia 2003).
static uint64_t random_below(uint64_t bound) {
    uint64_t state = own.random;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    own.random = state;
    return (state >> 32) * bound >> 32;
}

// Accesses to skip after a sample.
static int64_t next_gap(uint64_t period) { return (int64_t)random_below(2 * period - 1); }

// Accesses that a thread skips before its first sample: the lesser of two different numbers below 2N. That is
// the distance to the next sample from any moment of a walk with gaps as above.
static int64_t first_gap(uint64_t period) {
    uint64_t one = random_below(2 * period);
    uint64_t other = random_below(2 * period - 1);
    other += other >= one;
    return (int64_t)(one < other ? one : other);
}

// Seeds the random numbers of a thread (the finaliser of SplitMix64).
static void begin(void) {
    uint64_t seed = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) * 0x9e3779b97f4a7c15;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
    own.random = seed ^ (seed >> 31) ? seed ^ (seed >> 31) : 1;
}

// Counts every access of a stretch.
static void note_all(const void *const *addresses, const char *start, uint64_t count) {
    uint64_t period = addresses ? note(addresses, count) : 1;
    for (uint64_t number = 0; !addresses && period && number < count; ++number) {
        const void *line = start + number * ISOTHERM_LINE_BYTES;
        period = note(&line, 1);
    }
    isotherm_countdown = period ? 0 : INT64_MAX;
}

// Takes the samples that fall into a stretch of `count` accesses, which the countdown has passed
// already: at these addresses, or without any on the lines from `start` on.
RARE static void sample(const void *const *addresses, const char *start, uint64_t count) {
    if (__atomic_load_n(&counts_all, __ATOMIC_RELAXED)) {
        note_all(addresses, start, count);
        return;
    }
    int64_t due = isotherm_countdown + (int64_t)count;
    uint64_t period = note(NULL, 0);
    if (period == 0) {
        isotherm_countdown = INT64_MAX;
        return;
    }
    if (period == ISOTHERM_TOO_EARLY) {
        isotherm_countdown = 0;
        return;
    }
    struct isotherm_filter *filter = line_filter ? line_filter() : NULL;
    if (filter) {
        __atomic_store_n(&filters, true, __ATOMIC_RELAXED);
        own.filter = filter;
        if (addresses)
            filter_each(filter, addresses, count);
        else
            filter_range(filter, start, count);
        return;
    }
    if (period == 1) {
        __atomic_store_n(&counts_all, true, __ATOMIC_RELAXED);
        note_all(addresses, start, count);
        return;
    }
    bool is_first = !own.random;
    if (is_first)
        begin();
    // Below zero where a signal handler that ran between the countdown and here has changed it.
    if (is_first || due < 0)
        due = first_gap(period);
    while (due < (int64_t)count) {
        const void *picked = addresses ? addresses[due] : start + due * ISOTHERM_LINE_BYTES;
        note(&picked, 1);
        due += 1 + next_gap(period);
    }
    isotherm_countdown = due - (int64_t)count;
}

// This thread's filter, once it is known that one exists.
static inline struct isotherm_filter *current_filter(void) {
    return __atomic_load_n(&filters, __ATOMIC_RELAXED) ? own.filter : NULL;
}

// The inserted code keeps its values in registers over the call, which is rare.
ISOTHERM_ENTRY void isotherm_sample(const void *const *addresses, uint64_t count) __asm__(ISOTHERM_SAMPLE)
    __attribute__((preserve_most));
void isotherm_sample(const void *const *addresses, uint64_t count) {
    struct isotherm_filter *filter = current_filter();
    if (filter)
        filter_each(filter, addresses, count);
    else
        sample(addresses, NULL, count);
}

ISOTHERM_ENTRY void isotherm_sample_range(const void *start, uint64_t bytes) __asm__(ISOTHERM_SAMPLE_RANGE);
void isotherm_sample_range(const void *start, uint64_t bytes) {
    uint64_t lines = (bytes + ISOTHERM_LINE_BYTES - 1) / ISOTHERM_LINE_BYTES;
    if ((isotherm_countdown -= (int64_t)lines) >= 0)
        return;
    struct isotherm_filter *filter = current_filter();
    if (filter)
        filter_range(filter, start, lines);
    else
        sample(NULL, start, lines);
}
