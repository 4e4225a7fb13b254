// Calls through pointers whose callee is easily guessed: those of a type that few functions have
// whose address is taken, such as the allocator that a library is given; and virtual calls, where few functions of
// the type are at their place in the tables of the program's classes.
//
// A guess is asked for when the program runs, so it may be wrong.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

#include <string>
#include <utility>

namespace isotherm {

class IndirectCalls {
public:
  explicit IndirectCalls(llvm::Module &Module);

  // Makes calls that may lead to this function ask first whether they do, and call it by name then.
  // Answers why not, where too much would have to be asked.
  std::string callByName(llvm::Function &Function);

private:
  // What a pointer leads to: functions of a type, at a place in tables of virtual functions, or anywhere.
  using Key = std::pair<llvm::FunctionType *, unsigned>;

  void addTable(const llvm::GlobalVariable &Table);
  std::string callByName(llvm::Function &Function, Key Key);

  llvm::DenseMap<Key, llvm::SmallVector<llvm::CallBase *, 8>> Calls;
  llvm::DenseMap<Key, llvm::SmallPtrSet<const llvm::Function *, 4>> Functions;
  // The places of a function in tables.
  llvm::DenseMap<const llvm::Function *, llvm::SmallVector<unsigned, 2>> Places;
  // What is asked already.
  llvm::DenseSet<std::pair<llvm::CallBase *, llvm::Function *>> Asked;
};

} // namespace isotherm
