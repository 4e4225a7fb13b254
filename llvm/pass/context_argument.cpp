#include "context_argument.h"

#include "context_body.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace isotherm {

namespace {

// A function without code, like another except for the argument after the named ones.
Function *declareTwin(Function &Old) {
  FunctionType &Type = *Old.getFunctionType();
  SmallVector<llvm::Type *, 8> Arguments(Type.params());
  Arguments.push_back(llvm::Type::getInt64Ty(Old.getContext()));
  auto *NewType = FunctionType::get(Type.getReturnType(), Arguments, Type.isVarArg());
  Function *New = Function::Create(NewType, GlobalValue::InternalLinkage, Old.getAddressSpace(),
                                   Old.getName() + ".isotherm", Old.getParent());
  New->copyAttributesFrom(&Old);
  New->setLinkage(GlobalValue::InternalLinkage);
  New->setVisibility(GlobalValue::DefaultVisibility);
  New->setDLLStorageClass(GlobalValue::DefaultStorageClass);
  New->setDSOLocal(true);
  for (Argument &Argument : Old.args())
    New->getArg(Argument.getArgNo())->setName(Argument.getName());
  New->getArg(Old.arg_size())->setName("isotherm_context");
  return New;
}

// Whether all calls of a function are rewritten.
bool isOnlyCalled(const ContextGraph &Graph, const ContextFunction &Function) {
  if (!Function.Function->hasLocalLinkage())
    return false;
  SmallPtrSet<User *, 16> Rewritten;
  for (unsigned Call : Function.Incoming)
    Rewritten.insert(Graph.Calls[Call].Instructions.begin(), Graph.Calls[Call].Instructions.end());
  return all_of(Function.Function->uses(), [&](Use &Use) {
    if (isa<BlockAddress>(Use.getUser()))
      return true;
    auto *Call = dyn_cast<CallBase>(Use.getUser());
    return Call && Call->isCallee(&Use) && Rewritten.contains(Call);
  });
}

// The code moves to the new function; the old one is removed.
void moveCode(Function &Old, Function &New) {
  New.splice(New.begin(), &Old);
  for (Argument &Argument : Old.args())
    Argument.replaceAllUsesWith(New.getArg(Argument.getArgNo()));
  New.copyMetadata(&Old, 0);
  // Its callers have the wrong number of arguments until they are rewritten.
  Old.replaceAllUsesWith(&New);
  New.removeDeadConstantUsers();
  Old.eraseFromParent();
}

void copyCode(Function &Old, Function &New, ValueToValueMapTy &Map) {
  for (Argument &Argument : Old.args())
    Map[&Argument] = New.getArg(Argument.getArgNo());
  SmallVector<ReturnInst *, 8> Returns;
  CloneFunctionInto(&New, &Old, Map, CloneFunctionChangeType::LocalChangesOnly, Returns);
}

// The attributes of a call with the word behind the named arguments.
AttributeList withWord(const CallBase &Call, unsigned Named) {
  AttributeList Old = Call.getAttributes();
  SmallVector<AttributeSet, 8> OfArguments;
  for (unsigned I = 0; I < Call.arg_size(); ++I) {
    if (I == Named)
      OfArguments.push_back(AttributeSet());
    OfArguments.push_back(Old.getParamAttrs(I));
  }
  return AttributeList::get(Call.getContext(), Old.getFnAttrs(), Old.getRetAttrs(), OfArguments);
}

void callTwin(CallBase &Old, Function &Twin, Value *Word) {
  unsigned Named = Twin.arg_size() - 1;
  SmallVector<Value *, 8> Arguments(Old.args());
  Arguments.insert(Arguments.begin() + Named, Word);
  SmallVector<OperandBundleDef, 1> Bundles;
  Old.getOperandBundlesAsDefs(Bundles);
  IRBuilder<> Builder(&Old);
  CallBase *New;
  if (auto *Invoke = dyn_cast<InvokeInst>(&Old)) {
    New = Builder.CreateInvoke(&Twin, Invoke->getNormalDest(), Invoke->getUnwindDest(), Arguments,
                               Bundles);
  } else {
    CallInst *Call = Builder.CreateCall(&Twin, Arguments, Bundles);
    Call->setTailCallKind(cast<CallInst>(Old).getTailCallKind());
    New = Call;
  }
  New->setCallingConv(Old.getCallingConv());
  New->setAttributes(withWord(Old, Named));
  New->copyMetadata(Old);
  New->takeName(&Old);
  Old.replaceAllUsesWith(New);
  Old.eraseFromParent();
}

Value *wordFor(const ContextGraph &Graph, const ContextCall &Call, Value *Own, Instruction &At) {
  IRBuilder<> Builder(&At);
  if (auto *Known = dyn_cast<ConstantInt>(Own))
    return Builder.getInt64(Graph.calleeWord(Call, Known->getZExtValue()));
  unsigned Shift = Call.Frames.size() * Graph.fieldBits();
  Value *Shifted = Shift < 64 ? Builder.CreateShl(Own, Shift) : Builder.getInt64(0);
  return Builder.CreateAdd(Shifted, Builder.getInt64(Graph.word(Call)));
}

} // namespace

void passContexts(ContextGraph &Graph, GlobalVariable &Records) {
  std::vector<ContextBody> Bodies = originalBodies(Graph);
  std::vector<Function *> Twins(Graph.Functions.size());
  // Checked before the first copy is made: a copy calls the same functions as its original, and is rewritten
  // like it.
  std::vector<bool> Moving;
  for (const ContextFunction &Function : Graph.Functions)
    Moving.push_back(isOnlyCalled(Graph, Function));
  for (unsigned Number = 0; Number < Graph.Functions.size(); ++Number) {
    ContextFunction &Function = Graph.Functions[Number];
    if (Function.Incoming.empty())
      continue;
    llvm::Function *Old = Function.Function;
    if (!Moving[Number] && hasComputedGoto(*Old)) {
      Function.Unknown = "it jumps to addresses of labels and is called in other ways";
      continue;
    }
    llvm::Function *Twin = Twins[Number] = declareTwin(*Old);
    Argument *Word = Twin->getArg(Old->arg_size());
    if (Moving[Number]) {
      moveCode(*Old, *Twin);
      Function.Function = Bodies[Number].Code = Twin;
      Bodies[Number].Word = Word;
    } else {
      ValueToValueMapTy Map;
      copyCode(*Old, *Twin, Map);
      Bodies.push_back(Bodies[Number].copied(*Twin, *Word, Map));
    }
  }
  for (const ContextBody &Body : Bodies)
    placeRecords(Graph, Body, Records);
  for (const ContextBody &Body : Bodies)
    for (auto [Instruction, Number] : Body.Calls) {
      const ContextCall &Call = Graph.Calls[Number];
      if (!Twins[Call.Callee])
        continue;
      callTwin(*Instruction, *Twins[Call.Callee], wordFor(Graph, Call, Body.Word, *Instruction));
    }
}

} // namespace isotherm
