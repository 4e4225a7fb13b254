// The record of an allocation site in a program: one for each call that allocates, in the section
// `isotherm_sites`, 64 bytes each, without gaps.
//
// Written by the pass (llvm/pass), read by the entry points beside this file, by the runtime and by
// the tools (crates/abi/src/site.rs, which asserts the same layout). Places of texts are distances
// from the word that holds them, so that the record needs no relocation when the program is loaded
// and can be read from the file.
#ifndef ISOTHERM_SITE_H
#define ISOTHERM_SITE_H

#include <stddef.h>
#include <stdint.h>

// Version of this layout and of the functions below. Also the number at the end of
// ISOTHERM_VERSION_SYMBOL and of ISOTHERM_RESOLVE_NAME.
#define ISOTHERM_SITE_VERSION 1

// The section of the records.
#define ISOTHERM_SITE_SECTION "isotherm_sites"

// Every record refers to this symbol, which the library of the same version defines. The linker
// prints the name where that library is missing or another version, so the name is a sentence.
#define ISOTHERM_VERSION_SYMBOL \
    "isotherm_sites_1__link_with_the_isotherm_cc_that_compiled_all_objects"

// Exported by the runtime, by the same version.
#define ISOTHERM_RESOLVE_NAME "isotherm_resolve_site_1"

struct isotherm_site;

// The functions that serve a site of the C interface. Each takes the C function's arguments and
// the site behind them.
struct isotherm_heap_route {
    void *(*malloc)(size_t, struct isotherm_site *);
    void *(*calloc)(size_t, size_t, struct isotherm_site *);
    void *(*realloc)(void *, size_t, struct isotherm_site *);
    void *(*reallocarray)(void *, size_t, size_t, struct isotherm_site *);
    void *(*memalign)(size_t, size_t, struct isotherm_site *);
    void *(*aligned_alloc)(size_t, size_t, struct isotherm_site *);
    int (*posix_memalign)(void **, size_t, size_t, struct isotherm_site *);
    void *(*valloc)(size_t, struct isotherm_site *);
    void *(*pvalloc)(size_t, struct isotherm_site *);
    char *(*strdup)(const char *, struct isotherm_site *);
    char *(*strndup)(const char *, size_t, struct isotherm_site *);
};

// The functions that serve a site of C++; the tag `nothrow` is not passed on.
struct isotherm_new_route {
    void *(*single)(size_t, struct isotherm_site *);
    void *(*array)(size_t, struct isotherm_site *);
    void *(*single_aligned)(size_t, size_t, struct isotherm_site *);
    void *(*array_aligned)(size_t, size_t, struct isotherm_site *);
    void *(*single_nothrow)(size_t, struct isotherm_site *);
    void *(*array_nothrow)(size_t, struct isotherm_site *);
    void *(*single_aligned_nothrow)(size_t, size_t, struct isotherm_site *);
    void *(*array_aligned_nothrow)(size_t, size_t, struct isotherm_site *);
};

// The first target of the pointer to malloc in a record, until the site is used.
#define ISOTHERM_MALLOC_AT_FIRST "isotherm_malloc_at_first"

// One site. Words 1 to 3 belong to the function that serves the site, and have no meaning in the file.
struct isotherm_site {
    uint64_t id;                                   // the site's name, never 0 or 1
    const struct isotherm_heap_route *heap_route;  // who serves it; null until the first use
    union {
        const struct isotherm_new_route *new_route;             // the same for operator new
        void *(*malloc)(size_t bytes, struct isotherm_site *);  // of a call of malloc: who serves it
    };
    uint32_t number;                               // the runtime's number of the site, plus 1
    uint32_t version;                              // ISOTHERM_SITE_VERSION
    int32_t path;                                  // from this word to the source file's path
    int32_t function;                              // from this word to the function's name, for people
    uint32_t line;                                 // in the file; 0 where it is not known
    uint32_t column;
    uint32_t ordinal;                              // among calls of one line and column, from 0
    int32_t callee;                                // from this word to the name of what is called
    int32_t version_symbol;                        // from this word to ISOTHERM_VERSION_SYMBOL
    uint32_t context_depth;                        // 0; more in isotherm_context_record
};

#ifdef __cplusplus
#define ISOTHERM_ASSERT static_assert
#else
#define ISOTHERM_ASSERT _Static_assert
#endif
ISOTHERM_ASSERT(sizeof(struct isotherm_site) == 64, "a record is a cache line");
ISOTHERM_ASSERT(offsetof(struct isotherm_site, heap_route) == 8, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(offsetof(struct isotherm_site, new_route) == 16, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(offsetof(struct isotherm_site, number) == 24, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(offsetof(struct isotherm_site, path) == 32, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(offsetof(struct isotherm_site, function) == 36, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(offsetof(struct isotherm_site, callee) == 52, "crates/abi/src/site.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_heap_route) == 11 * sizeof(void *), "crates/abi/src/site.rs");
ISOTHERM_ASSERT(sizeof(struct isotherm_new_route) == 8 * sizeof(void *), "crates/abi/src/site.rs");

// The runtime's answer: the routes to write into a site. A null route means that the program has its own
// allocator there, which then serves the site.
struct isotherm_routes {
    const struct isotherm_heap_route *heap;
    const struct isotherm_new_route *operator_new;
    int settled;  // 0: too early in the program's start; ask again at the next allocation
};

// Type of ISOTHERM_RESOLVE_NAME. `own_malloc` and `own_new` are the functions that the module
// would call without Isotherm (`own_new` null in a module that has none).
typedef struct isotherm_routes (*isotherm_resolve)(struct isotherm_site *site, void *own_malloc,
                                                   void *own_new);

#endif
