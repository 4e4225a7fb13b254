// The pass at the link: tells apart the calls that lead to an allocation, for the whole program.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once, before the program is optimised as a whole: what is not exported is internal by then.
class Contexts : public llvm::PassInfoMixin<Contexts> {
public:
  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);

  static bool isRequired() { return true; }
};

// Whether this link was asked to tell contexts apart, or asked for something that cannot be.
bool tellsContexts();

} // namespace isotherm
