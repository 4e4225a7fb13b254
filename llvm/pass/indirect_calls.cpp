#include "indirect_calls.h"

#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/CallPromotionUtils.h"

using namespace llvm;

namespace isotherm {

namespace {

// A question for each function of the type: with more of them the answer is mostly no.
const unsigned FunctionsMost = 3;
// Each call through a pointer becomes two, so of a type that is called everywhere none is.
const size_t CallsMost = 64;

} // namespace

IndirectCalls::IndirectCalls(Module &Module) {
  for (Function &Function : Module) {
    if (!Function.isDeclaration() && Function.hasAddressTaken())
      ++Functions[Function.getFunctionType()];
    for (BasicBlock &Block : Function)
      for (Instruction &Instruction : Block)
        if (auto *Call = dyn_cast<CallBase>(&Instruction);
            Call && Call->isIndirectCall() && !Call->isMustTailCall() && !isa<CallBrInst>(Call))
          Calls[Call->getFunctionType()].push_back(Call);
  }
}

void IndirectCalls::callByName(Function &Function) {
  auto Found = Calls.find(Function.getFunctionType());
  if (Found == Calls.end() || Functions.lookup(Function.getFunctionType()) > FunctionsMost ||
      Found->second.size() > CallsMost)
    return;
  for (CallBase *Call : Found->second)
    if (Call->getCallingConv() == Function.getCallingConv() && isLegalToPromote(*Call, &Function))
      promoteCallWithIfThenElse(*Call, &Function);
}

} // namespace isotherm
