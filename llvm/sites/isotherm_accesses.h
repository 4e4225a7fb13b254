// What the profile build inserts into a program, and what it calls (isotherm-cc --profile).
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

// Version of all of this; also the number at the end of each name, so that objects and libraries of
// different versions do not link, and programs and runtimes of different versions do not meet.
#define ISOTHERM_ACCESS_VERSION 1

// `int64_t`, one a thread: accesses until the next sample.
#define ISOTHERM_COUNTDOWN "isotherm_countdown_1"

// `void (const void *const *addresses, uint64_t count)`, which keeps all general registers
// (preserve_most): for a stretch after which the countdown is below zero.
#define ISOTHERM_SAMPLE "isotherm_sample_1"

// `void (const void *start, uint64_t bytes)`: counts an access for each line of a range down, as a
// call, because the length is known only when the program runs.
#define ISOTHERM_SAMPLE_RANGE "isotherm_sample_range_1"

// Bytes of a range that are one access: a cache line, which is what memory moves.
#define ISOTHERM_LINE_BYTES 64

// Present in programs and libraries that have the inserted code; holds the version as a word.
#define ISOTHERM_ACCESS_SECTION "isotherm_accesses"

// What the runtime exports: `uint64_t (const void *const *addresses, size_t count)`; counts these accesses
// and answers how many lie between two samples on the mean, 1 where it wants to choose among all itself (a cache filter),
// 0 where nobody counts.
#define ISOTHERM_NOTE_NAME "isotherm_note_accesses_1"

#endif
