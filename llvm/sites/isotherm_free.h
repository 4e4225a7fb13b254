// The pointers that the pass puts in place of `free` and `operator delete` (llvm/pass/straight_calls.cpp),
// defined by the files beside this one.
//
// A call through a pointer of the module takes two jumps less than one by name, which reaches the runtime
// through the linker's table, and then the runtime's own pointer.
#ifndef ISOTHERM_FREE_H
#define ISOTHERM_FREE_H

// The name of a pointer. The number is the version of this interface; the linker prints the name where
// the library is missing or another version, so it is a sentence.
#define ISOTHERM_FREE_SYMBOL(function) \
    "isotherm_" function "_1__link_with_the_isotherm_cc_that_compiled_all_objects"

// Exported by the runtime, by the same version.
#define ISOTHERM_RESOLVE_FREE_NAME "isotherm_resolve_free_1"

// Type of ISOTHERM_RESOLVE_FREE_NAME: the function that frees the blocks that the module would give to `own`.
// Null where that must be `own` itself, because it is not the runtime's.
typedef void (*isotherm_free_function)(void *block);
typedef isotherm_free_function (*isotherm_resolve_free)(void *own);

#endif
