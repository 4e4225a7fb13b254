// The pass that replaces every call that allocates by one with the address of its site's record.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once on each module, before all other passes: a call is then where its author wrote it, and its name
// does not depend on later optimisation.
class AllocationSites : public llvm::PassInfoMixin<AllocationSites> {
public:
  // `AtLink`: the second time, on the whole program. Names the remaining calls: those in headers of the system,
  // whose callers are known by then.
  explicit AllocationSites(bool AtLink = false) : AtLink(AtLink) {}

  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);

  // Required: a program must get its sites even if a user bisects the optimiser.
  static bool isRequired() { return true; }

private:
  bool AtLink;
};

} // namespace isotherm
