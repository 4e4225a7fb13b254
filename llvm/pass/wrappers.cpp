#include "wrappers.h"

#include "found_wrappers.h"
#include "options.h"
#include "source_place.h"

#include "llvm/IR/Attributes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace isotherm {

namespace {

const StringRef TwinPrefix = "isotherm_wrapper.";

FunctionType *withSite(const FunctionType &Type) {
  SmallVector<llvm::Type *, 8> Arguments(Type.params());
  Arguments.push_back(PointerType::getUnqual(Type.getContext()));
  return FunctionType::get(Type.getReturnType(), Arguments, /*isVarArg=*/false);
}

} // namespace

Wrappers::Wrappers(ArrayRef<std::string> List, SmallPtrSet<const Function *, 8> Found)
    : Guesses(options::findWrappers()), Found(std::move(Found)) {
  for (const std::string &Name : List)
    Names.insert(Name);
}

bool Wrappers::isWrapper(const Function &Function) const {
  // The arguments after the named ones of a variadic function cannot be passed on.
  return Found.contains(&Function) || (Names.contains(Function.getName()) && !Function.isVarArg());
}

bool Wrappers::mayBeWrapper(const Function &Function) const {
  return Guesses && isDeclaredAllocator(Function);
}

FunctionCallee Wrappers::twin(Function &Wrapper) const {
  std::string Name = (TwinPrefix + Wrapper.getName()).str();
  FunctionCallee Twin =
      Wrapper.getParent()->getOrInsertFunction(Name, withSite(*Wrapper.getFunctionType()));
  auto *Declared = dyn_cast<Function>(Twin.getCallee());
  if (Declared && Declared->isDeclaration() && !isWrapper(Wrapper))
    Declared->setLinkage(GlobalValue::ExternalWeakLinkage);
  return Twin;
}

// Other modules may request the twin of a function that they can call, and only of such.
bool Wrappers::wantsTwin(const Function &Function) const {
  return !Function.isDeclaration() && isWrapper(Function) &&
         (!Function.isDiscardableIfUnused() ||
          any_of(Function.users(), [](const User *User) { return isa<CallBase>(User); }));
}

void Wrappers::makeTwins(Module &Module) const {
  SmallVector<Function *, 8> Defined;
  for (Function &Function : Module)
    if (wantsTwin(Function))
      Defined.push_back(&Function);
  for (Function *Wrapper : Defined) {
    std::string Name = (TwinPrefix + Wrapper->getName()).str();
    // The twin does not exist for a function that comes from another library.
    bool IsElsewhere = Wrapper->hasAvailableExternallyLinkage();
    Function *Twin = Function::Create(withSite(*Wrapper->getFunctionType()),
                                      IsElsewhere ? GlobalValue::LinkOnceODRLinkage : Wrapper->getLinkage(),
                                      Name, Module);
    ValueToValueMapTy Map;
    for (Argument &Old : Wrapper->args()) {
      Argument *New = Twin->getArg(Old.getArgNo());
      New->setName(Old.getName());
      Map[&Old] = New;
    }
    SmallVector<ReturnInst *, 8> Returns;
    CloneFunctionInto(Twin, Wrapper, Map, CloneFunctionChangeType::LocalChangesOnly, Returns);
    // With one more argument, a call in the place of the return can only be attempted.
    for (BasicBlock &Block : *Twin)
      if (CallInst *Tail = Block.getTerminatingMustTailCall())
        Tail->setTailCallKind(CallInst::TCK_Tail);
    // A caller of a function in a header has its code. A local function is invisible elsewhere anyway.
    bool IsShared = isSystemFunction(*Wrapper) && !Wrapper->hasLocalLinkage();
    Twin->setVisibility(IsShared ? GlobalValue::HiddenVisibility : Wrapper->getVisibility());
    if (Wrapper->hasComdat() || IsElsewhere)
      Twin->setComdat(Module.getOrInsertComdat(Name));
  }
}

Argument *Wrappers::siteArgument(Function &Function) {
  if (!Function.getName().starts_with(TwinPrefix) || Function.arg_empty())
    return nullptr;
  return Function.getArg(Function.arg_size() - 1);
}

} // namespace isotherm
