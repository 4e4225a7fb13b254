// Finds the functions of a module that allocate for their callers, from their code.
//
//   void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
//
// A function counts if it returns only fresh blocks, null and its own arguments, and if the size of a block
// comes from its arguments. A function that searches for an object and allocates a missing one does not count,
// nor does one that allocates a structure of one size: there, the call within is the site.
#pragma once

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

namespace isotherm {

// The functions of this module that count, and those that lead to others.
llvm::SmallPtrSet<const llvm::Function *, 8> findWrappers(const llvm::Module &Module);

// Whether a function that is defined elsewhere may be one: its declaration names the argument that is the size
// of the allocation (the attribute `alloc_size` of C).
bool isDeclaredAllocator(const llvm::Function &Function);

} // namespace isotherm
