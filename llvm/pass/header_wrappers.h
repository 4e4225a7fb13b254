// Functions of system headers that lead to an allocation: `std::vector::push_back`, and all functions between
// it and operator new.
//
// The place of the allocation is in the header, the same for the whole program, so they are treated as wrappers: the call
// of one from a project's own source is the site.
#pragma once

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Module.h"

namespace isotherm {

// Those with code in this module. Calls through pointers do not count.
llvm::SmallPtrSet<const llvm::Function *, 8> headerWrappers(const llvm::Module &Module);

} // namespace isotherm
