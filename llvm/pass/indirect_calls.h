// Calls through pointers whose callee is easily guessed: those of a type that few functions have
// whose address is taken, such as the allocator that a library is given.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace isotherm {

class IndirectCalls {
public:
  explicit IndirectCalls(llvm::Module &Module);

  // Makes calls that may lead to this function ask first whether they do, and call it by name then.
  // None where too many functions have its type.
  void callByName(llvm::Function &Function);

private:
  llvm::DenseMap<llvm::FunctionType *, llvm::SmallVector<llvm::CallBase *, 8>> Calls;
  llvm::DenseMap<llvm::FunctionType *, unsigned> Functions;
};

} // namespace isotherm
