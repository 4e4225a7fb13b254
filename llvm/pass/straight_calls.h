// The pass that removes the jumps on the way to the allocator: calls that replaced `malloc`, and calls of
// `free` and `operator delete`, go through a pointer in the module to the function that serves them.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once on each module, after all optimisation: until then the optimiser and the link need the call by
// name.
class StraightCalls : public llvm::PassInfoMixin<StraightCalls> {
public:
  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);
};

} // namespace isotherm
