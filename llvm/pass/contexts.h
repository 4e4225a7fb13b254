// The pass at the link: distinguishes the calls that lead to an allocation, for the whole program.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once, before the program is optimised as a whole: symbols that are not exported are internal by then.
class Contexts : public llvm::PassInfoMixin<Contexts> {
public:
  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);

  static bool isRequired() { return true; }
};

// Whether this link must distinguish contexts, or has an invalid option for it.
bool tellsContexts();

} // namespace isotherm
