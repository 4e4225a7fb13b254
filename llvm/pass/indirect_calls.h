// Turns calls through pointers into calls by name where the callee is easily guessed: few functions have the
// type and their address taken, such as the allocator that a library is given; or the call is virtual, and few
// functions of the type are at its place in the tables of the program's classes.
//
// The program checks a guess at run time, so a guess may be wrong.
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

  // Makes calls that may lead to this function compare the pointer first, and call the function by name on a
  // match. Returns the reason where too many comparisons would be needed.
  std::string callByName(llvm::Function &Function);

private:
  // The possible targets of a pointer: functions of a type, at a place in tables of virtual functions, or
  // anywhere.
  using Key = std::pair<llvm::FunctionType *, unsigned>;

  void addTable(const llvm::GlobalVariable &Table);
  std::string callByName(llvm::Function &Function, Key Key);

  llvm::DenseMap<Key, llvm::SmallVector<llvm::CallBase *, 8>> Calls;
  llvm::DenseMap<Key, llvm::SmallPtrSet<const llvm::Function *, 4>> Functions;
  // The places of a function in tables.
  llvm::DenseMap<const llvm::Function *, llvm::SmallVector<unsigned, 2>> Places;
  // Comparisons that exist already.
  llvm::DenseSet<std::pair<llvm::CallBase *, llvm::Function *>> Asked;
};

} // namespace isotherm
