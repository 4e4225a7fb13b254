// One copy of a function's code, with its instructions that lead to allocations.
#pragma once

#include "context_graph.h"

#include "llvm/Transforms/Utils/ValueMapper.h"

#include <utility>
#include <vector>

namespace isotherm {

struct ContextBody {
  // The function's number in the graph.
  unsigned Function;
  llvm::Function *Code;
  // The word of its context: an argument or a constant.
  llvm::Value *Word;
  // Calls that pass the context on, with their numbers.
  std::vector<std::pair<llvm::CallBase *, unsigned>> Calls;
  // Operands that are sites, with the numbers of their allocations.
  struct Operand {
    llvm::Instruction *User;
    unsigned Index;
    unsigned Allocation;
  };
  std::vector<Operand> Sites;

  // The same for a copy of the code.
  ContextBody copied(llvm::Function &Code, llvm::Value &Word, llvm::ValueToValueMapTy &Map) const;
};

// The functions as they are: their context is not known.
std::vector<ContextBody> originalBodies(const ContextGraph &Graph);

// Replaces the sites by the records of contexts.
void placeRecords(const ContextGraph &Graph, const ContextBody &Body,
                  llvm::GlobalVariable &Records);

} // namespace isotherm
