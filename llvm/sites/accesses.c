// Chooses which accesses of a program are sampled (isotherm-cc --profile), and tells the runtime.
//
// Every thread goes through its accesses in gaps drawn at random, evenly from 1 to 2N-1, so N on the
// mean, and the first gap is drawn so that the very first access is sampled as often as any other: each
// with probability 1/N. With N = 1 every access is.
//
// All of it may be called by a signal handler and by a thread that has just begun: it allocates nothing
// and takes no lock. Without the runtime a thread comes here once.
#include <stddef.h>
#include <stdint.h>

#include "isotherm_accesses.h"
#include "resolve.h"

// Weak: a statically linked program has no loader, and then no runtime either.
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

#define ISOTHERM_THREAD __attribute__((visibility("hidden"), tls_model("initial-exec")))

// Word in the section by which the tools know such a program; kept whatever the linker leaves out.
__attribute__((used, retain, section(ISOTHERM_ACCESS_SECTION))) static const uint32_t present =
    ISOTHERM_ACCESS_VERSION;

// Of initial-exec, because a call for each stretch (what libraries would need else) costs more than
// the rest; a library that is loaded later finds room for two words in the block of every thread.
extern __thread int64_t isotherm_countdown __asm__(ISOTHERM_COUNTDOWN) ISOTHERM_THREAD;
__thread int64_t isotherm_countdown;

// State of the thread's random numbers; 0 until it has taken its first sample.
static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

typedef uint64_t (*note_function)(const void *const *addresses, size_t count);
static note_function note_accesses;

// Threads so far, by which each has its own random numbers, the same in every run.
static uint64_t threads;

// Before all other constructors of the module, which may be counted already.
__attribute__((constructor(101))) static void look_up(void) {
    if (dlsym)
        note_accesses = (note_function)dlsym(NULL /* RTLD_DEFAULT */, ISOTHERM_NOTE_NAME);
}

// Counts accesses and answers N, or 0 where nobody counts.
static uint64_t note(const void *const *addresses, size_t count) {
    return note_accesses ? note_accesses(addresses, count) : 0;
}

// A number from 0 to `bound` - 1, `bound` below 2^32. Xorshift (Marsaglia 2003).
static uint64_t random_below(uint64_t bound) {
    uint64_t state = random_state;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    random_state = state;
    return (state >> 32) * bound >> 32;
}

// Accesses that are passed over after a sample.
static int64_t next_gap(uint64_t period) { return (int64_t)random_below(2 * period - 1); }

// Accesses that a thread passes over before its first sample: the lesser of two different numbers below
// 2N. That is how far the next sample is from any moment of a walk with gaps as above.
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
    random_state = seed ^ (seed >> 31) ? seed ^ (seed >> 31) : 1;
}

// Takes the samples that fall into a stretch of `count` accesses, which the countdown has passed
// already: at these addresses, or without any on the lines from `start` on.
static void sample(const void *const *addresses, const char *start, uint64_t count) {
    enum { BATCH = 32 };
    const void *picked[BATCH];
    size_t used = 0;
    int64_t due = isotherm_countdown + (int64_t)count;
    uint64_t period = note(NULL, 0);
    if (period == 0) {
        isotherm_countdown = INT64_MAX;
        return;
    }
    if (!random_state) {
        begin();
        due = first_gap(period);
    } else if (period == 1) {
        // A signal handler that came between the countdown and here has changed it.
        due = 0;
    } else if (due < 0) {
        due = first_gap(period);
    }
    while (due < (int64_t)count) {
        picked[used++] = addresses ? addresses[due] : start + due * ISOTHERM_LINE_BYTES;
        if (used == BATCH) {
            note(picked, used);
            used = 0;
        }
        due += 1 + next_gap(period);
    }
    if (used)
        note(picked, used);
    isotherm_countdown = due - (int64_t)count;
}

// The inserted code keeps its values in registers over the call, which is rare.
ISOTHERM_ENTRY void isotherm_sample(const void *const *addresses, uint64_t count) __asm__(ISOTHERM_SAMPLE)
    __attribute__((preserve_most, cold));
void isotherm_sample(const void *const *addresses, uint64_t count) {
    sample(addresses, NULL, count);
}

ISOTHERM_ENTRY void isotherm_sample_range(const void *start, uint64_t bytes) __asm__(ISOTHERM_SAMPLE_RANGE);
void isotherm_sample_range(const void *start, uint64_t bytes) {
    uint64_t lines = (bytes + ISOTHERM_LINE_BYTES - 1) / ISOTHERM_LINE_BYTES;
    if ((isotherm_countdown -= (int64_t)lines) < 0)
        sample(NULL, start, lines);
}
