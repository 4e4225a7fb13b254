#include "header_wrappers.h"

#include "entry_points.h"
#include "source_place.h"

#include "llvm/IR/InstrTypes.h"

using namespace llvm;

namespace isotherm {

namespace {

using FunctionSet = SmallPtrSet<const Function *, 8>;

// Whether a function is in a header and can be copied with one more argument.
bool isCandidate(const Function &Function) {
  return !Function.isDeclaration() && !Function.isInterposable() && !Function.isVarArg() &&
         !Function.hasFnAttribute(Attribute::Naked) && !Function.isPresplitCoroutine() &&
         !entryPoint(Function.getName()) && isSystemFunction(Function) &&
         none_of(Function, [](const BasicBlock &Block) {
           return Block.hasAddressTaken() || Block.getTerminatingMustTailCall();
         });
}

bool isAllocation(const Function &Function) {
  const EntryPoint *Entry = entryPoint(Function.getName());
  return Entry && Function.isDeclarationForLinker() && Entry->fits(*Function.getFunctionType());
}

} // namespace

FunctionSet headerWrappers(const Module &Module) {
  FunctionSet Found;
  SmallVector<const Function *, 32> Left;
  for (const Function &Function : Module)
    if (isAllocation(Function))
      Left.push_back(&Function);
  // From the allocations outwards, each function once.
  while (!Left.empty()) {
    const Function *Callee = Left.pop_back_val();
    for (const User *User : Callee->users()) {
      auto *Call = dyn_cast<CallBase>(User);
      if (!Call || Call->getCalledFunction() != Callee)
        continue;
      const Function *Caller = Call->getFunction();
      if (!Found.contains(Caller) && isCandidate(*Caller) && Found.insert(Caller).second)
        Left.push_back(Caller);
    }
  }
  return Found;
}

} // namespace isotherm
