// The calls of a module that lead to its allocations: one table in the section `isotherm_contexts`, written at
// the link (llvm/pass/context_tables.cpp), read by contexts.c at the first use of a context and by the tools
// (crates/symbols/src/cloned_contexts.rs).
//
// A *context* is up to `levels` calls around an allocation. The program carries it as a number, from
// caller to callee; level j of a function counts the paths of j calls that lead to it:
//
//     number of a path = first number of its innermost call + number of the rest in the caller
//
// and 0 is the unknown path. The number of an allocation's context is the place of its record among the records
// of the table, so an allocation needs no search.
//
// The table is a header and six arrays of words, without gaps, in this order:
//
//     isotherm_contexts | frames | frame lists | functions | calls | first numbers | allocations
//
// Places of texts and records are distances in bytes from the word that holds them.
#ifndef ISOTHERM_CONTEXTS_H
#define ISOTHERM_CONTEXTS_H

#include "isotherm_site.h"

#define ISOTHERM_CONTEXTS_VERSION 1
#define ISOTHERM_CONTEXTS_SECTION "isotherm_contexts"
#define ISOTHERM_CONTEXTS_SYMBOL "isotherm_contexts_1"

// Most calls around an allocation: as many as fit into a record beside its site.
#define ISOTHERM_CONTEXT_LEVELS 6

// Means "not known" where a number is expected.
#define ISOTHERM_CONTEXTS_NONE UINT32_MAX

struct isotherm_contexts {
    uint32_t version;        // ISOTHERM_CONTEXTS_VERSION
    uint32_t levels;         // first numbers that each call has
    uint32_t frames;         // how many there are of each
    uint32_t listed_frames;
    uint32_t functions;
    uint32_t calls;
    uint32_t allocations;
    uint32_t records;
    int32_t first_record;    // the array of records, zero in the file
    uint32_t reserved;       // 0
};

// A call in the source.
struct isotherm_frame {
    uint32_t hash_low;   // its stable name: file, function, line in the function, column
    uint32_t hash_high;
    int32_t path;        // of the file, below the project's root where it lies there
    int32_t function;    // the function that holds the call, for people
    uint32_t line;       // in the file; 0 where it is not known
    uint32_t column;
};

// A function on the path of contexts: the calls that lead to it.
struct isotherm_context_function {
    uint32_t first_call;
    uint32_t calls;
    uint32_t may_begin;  // 0: all its callers are known, so no context begins here
};

// A call in the program. Calls that were inlined around it are separate frames.
struct isotherm_context_call {
    uint32_t caller;       // function; NONE where its own callers are not distinguished
    uint32_t first_frame;  // in the list of frames, from the inside out
    uint32_t frames;       // at least 1
};

// An allocation: a site in one function of the program, and the records of its contexts.
struct isotherm_context_allocation {
    uint32_t first_record;
    uint32_t function;     // NONE where its callers are not distinguished
    uint32_t level;        // calls that its number counts
    uint32_t first_frame;  // calls that were inlined around the allocation
    uint32_t frames;
    int32_t site;          // the site's own record
};

// A record of a context, in the array of records: begins as `isotherm_site`, without its texts. Zero until its
// first use.
struct isotherm_context_record {
    uint64_t id;
    const struct isotherm_heap_route *heap_route;
    const struct isotherm_new_route *new_route;
    uint32_t number;
    uint32_t version;
    int32_t frames[ISOTHERM_CONTEXT_LEVELS + 1];  // from each word to the site, then to the frames
    uint32_t depth;                               // how many there are
};

ISOTHERM_ASSERT(sizeof(struct isotherm_context_record) == sizeof(struct isotherm_site),
                "both are served alike");
ISOTHERM_ASSERT(offsetof(struct isotherm_context_record, frames) == 32, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(offsetof(struct isotherm_context_record, depth) == 60, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_contexts) == 40, "crates/abi/src/contexts.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_frame) == 24, "crates/abi/src/contexts.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_context_function) == 12, "crates/abi/src/contexts.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_context_call) == 12, "crates/abi/src/contexts.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_context_allocation) == 24, "crates/abi/src/contexts.rs");

// The name of a context that is one call longer. Begins with the site's name.
static inline uint64_t isotherm_longer_context(uint64_t id, uint64_t frame) {
    uint64_t hash = ((id << 7 | id >> 57) ^ frame) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    return hash > 1 ? hash : hash + 2;
}

#endif
