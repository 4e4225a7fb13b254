#include "wrappers.h"

#include "llvm/IR/Attributes.h"
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

Wrappers::Wrappers(ArrayRef<std::string> List) {
  for (const std::string &Name : List)
    Names.insert(Name);
}

bool Wrappers::isWrapper(const Function &Function) const {
  // What follows the named arguments of a variadic function cannot be passed on.
  return Names.contains(Function.getName()) && !Function.isVarArg();
}

FunctionCallee Wrappers::twin(Function &Wrapper) const {
  std::string Name = (TwinPrefix + Wrapper.getName()).str();
  return Wrapper.getParent()->getOrInsertFunction(Name, withSite(*Wrapper.getFunctionType()));
}

void Wrappers::makeTwins(Module &Module) const {
  SmallVector<Function *, 8> Defined;
  for (Function &Function : Module)
    if (!Function.isDeclaration() && isWrapper(Function))
      Defined.push_back(&Function);
  for (Function *Wrapper : Defined) {
    std::string Name = (TwinPrefix + Wrapper->getName()).str();
    Function *Twin = Function::Create(withSite(*Wrapper->getFunctionType()), Wrapper->getLinkage(),
                                      Name, Module);
    ValueToValueMapTy Map;
    for (Argument &Old : Wrapper->args()) {
      Argument *New = Twin->getArg(Old.getArgNo());
      New->setName(Old.getName());
      Map[&Old] = New;
    }
    SmallVector<ReturnInst *, 8> Returns;
    CloneFunctionInto(Twin, Wrapper, Map, CloneFunctionChangeType::LocalChangesOnly, Returns);
    Twin->setVisibility(Wrapper->getVisibility());
    if (Wrapper->hasComdat())
      Twin->setComdat(Module.getOrInsertComdat(Name));
  }
}

Argument *Wrappers::siteArgument(Function &Function) {
  if (!Function.getName().starts_with(TwinPrefix) || Function.arg_empty())
    return nullptr;
  return Function.getArg(Function.arg_size() - 1);
}

} // namespace isotherm
