// The interface of the code that the profile build inserts into a program (isotherm-cc --profile).
//
// Every thread counts its accesses down to the next sample. At the end of a stretch of code that has
// k loads and stores the pass (llvm/pass/access_counts.cpp) puts
//
//     if ((countdown -= k) < 0)
//         sample(addresses, k);
//
// The functions are in accesses.c; the runtime's side is crates/abi/src/accesses.rs.
#ifndef ISOTHERM_ACCESSES_H
#define ISOTHERM_ACCESSES_H

// Version of all of this; also the number at the end of each name, so that objects and libraries of different
// versions do not link, and programs and runtimes of different versions do not interact.
#define ISOTHERM_ACCESS_VERSION 2

// `int64_t`, one a thread: accesses until the next sample.
#define ISOTHERM_COUNTDOWN "isotherm_countdown_2"

// `void (const void *const *addresses, uint64_t count)`, which keeps all general registers
// (preserve_most): for a stretch after which the countdown is below zero.
#define ISOTHERM_SAMPLE "isotherm_sample_2"

// `void (const void *start, uint64_t bytes)`: counts an access for each line of a range down, as a
// call, because the length is known only when the program runs.
#define ISOTHERM_SAMPLE_RANGE "isotherm_sample_range_2"

// Bytes of a range that count as one access: a cache line, the unit of memory transfers.
#define ISOTHERM_LINE_BYTES 64

// Present in programs and libraries with the inserted code; holds the version as a word.
#define ISOTHERM_ACCESS_SECTION "isotherm_accesses"

// Exported by the runtime: `uint64_t (const void *const *addresses, size_t count)`; counts these accesses and
// returns the mean distance of two samples, 0 where the process counts none, now or later.
#define ISOTHERM_NOTE_NAME "isotherm_note_accesses_2"

// The answer before the program's start is far enough to know; nothing was counted.
#define ISOTHERM_TOO_EARLY UINT64_MAX

// Also exported by the runtime: `struct isotherm_filter *(void)`; this thread's filter, which stays, or null
// where accesses are not filtered. Called once it is known that the process counts accesses.
#define ISOTHERM_FILTER_NAME "isotherm_line_filter_2"

#if !defined(__cplusplus)
#include <stdint.h>

// A direct-mapped cache of line numbers: line n has place n & mask. An access that finds its line there is left
// out, any other takes the place. Of the misses, `left` are skipped, then one is passed to the runtime, which
// returns the next number to skip.
struct isotherm_filter {
    uint64_t left;
    uint64_t of_runtime;
    uint64_t mask;
    uint64_t unused[5];
    uint64_t lines[];
};
_Static_assert(sizeof(struct isotherm_filter) == 64, "as crates/abi/src/accesses.rs has it");
#endif

#endif
