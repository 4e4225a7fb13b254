// The pass: every call that allocates becomes one with the address of its site's record.
#pragma once

#include "llvm/IR/PassManager.h"

namespace isotherm {

// Runs once on each module, before everything else: a call is then where its author wrote it, and
// its name does not depend on what the optimiser does later.
class AllocationSites : public llvm::PassInfoMixin<AllocationSites> {
public:
  // `AtLink`: the second time, on the whole program. Names what is left: calls in headers of the
  // system, whose callers are known by then.
  explicit AllocationSites(bool AtLink = false) : AtLink(AtLink) {}

  llvm::PreservedAnalyses run(llvm::Module &Module, llvm::ModuleAnalysisManager &Analyses);

  // A program may not come out without its sites because somebody bisects the optimiser.
  static bool isRequired() { return true; }

private:
  bool AtLink;
};

} // namespace isotherm
