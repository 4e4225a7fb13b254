// The pass of the profile build: counts the loads and stores of a program down to the next sample.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once on each module, after all optimisation: the inserted code then hinders no optimisation, loops stay
// vectorised, and only accesses that the program really makes are counted.
class AccessCounts : public llvm::PassInfoMixin<AccessCounts> {
public:
  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);

  // Without this, a profile build would look like a program without accesses.
  static bool isRequired() { return true; }
};

} // namespace isotherm
