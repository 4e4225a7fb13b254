// The pass that leaves out the jumps on the way to the allocator: calls that were made of `malloc`, and calls of `free`
// and `operator delete`, go through a pointer in the module, which leads straight to who serves them.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once on each module, after all optimisation: until then a call by name is what the optimiser
// knows, and what is told apart at the link.
class StraightCalls : public llvm::PassInfoMixin<StraightCalls> {
public:
  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);
};

} // namespace isotherm
