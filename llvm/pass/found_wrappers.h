// Functions of a module that allocate for their callers, found by looking at them.
//
//   void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
//
// A function counts if it returns nothing but fresh blocks, null and what it was given, and if the
// size of a block comes from its arguments. A function that looks something up and allocates what is
// missing does not count, nor does one that allocates a structure of one size: there, the call within is the site.
#pragma once

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

namespace isotherm {

// The functions of this module that count, with those that lead to others.
llvm::SmallPtrSet<const llvm::Function *, 8> findWrappers(const llvm::Module &Module);

// Whether a function that is defined elsewhere may be one: its declaration says which argument is
// the size of what it allocates (the attribute `alloc_size` of C).
bool isDeclaredAllocator(const llvm::Function &Function);

} // namespace isotherm
