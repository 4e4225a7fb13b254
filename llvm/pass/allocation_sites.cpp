#include "allocation_sites.h"

#include "contexts.h"
#include "descriptor.h"
#include "entry_points.h"
#include "found_wrappers.h"
#include "header_wrappers.h"
#include "options.h"
#include "site_key.h"
#include "wrappers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace isotherm {

namespace {

// A call that allocates.
struct Found {
  CallBase *Call;
  // Null for a wrapper.
  const EntryPoint *Entry;

  Function &callee() const { return *Call->getCalledFunction(); }
  // Name of the callee, for display.
  StringRef name() const { return Entry ? Entry->Name : callee().getName(); }
  // Number of arguments that are passed on.
  unsigned kept() const { return Entry && !isVariadic() ? Entry->Kept : Call->arg_size(); }
  bool isVariadic() const { return Call->getFunctionType()->isVarArg(); }
};

// A function that the program defines under the name of an allocator allocates by its own rules, and so do the
// functions that it calls.
bool isAllocator(const Function &Function) { return entryPoint(Function.getName()) != nullptr; }

// Whether a call allocates, and through which function.
bool classify(CallBase &Call, const Wrappers &Wrappers, Found &Result) {
  Function *Callee = Call.getCalledFunction();
  if (!Callee || Call.isMustTailCall() || Callee->getFunctionType() != Call.getFunctionType())
    return false;
  if (Wrappers.isWrapper(*Callee) || Wrappers.mayBeWrapper(*Callee)) {
    Result = {&Call, nullptr};
    return true;
  }
  const EntryPoint *Entry = entryPoint(Callee->getName());
  // A header may define a function of the library as well (vasprintf of a hardened build).
  if (!Entry || !Callee->isDeclarationForLinker() || !Entry->fits(*Callee->getFunctionType()))
    return false;
  Result = {&Call, Entry};
  return true;
}

SmallVector<Found, 32> find(Module &Module, const Wrappers &Wrappers) {
  SmallVector<Found, 32> Calls;
  for (Function &Function : Module) {
    if (isAllocator(Function))
      continue;
    for (BasicBlock &Block : Function)
      for (Instruction &Instruction : Block)
        if (auto *Call = dyn_cast<CallBase>(&Instruction)) {
          Found Result;
          if (classify(*Call, Wrappers, Result))
            Calls.push_back(Result);
        }
  }
  return Calls;
}

// Puts the site behind the arguments, or before those of a variadic function.
template <typename T>
void insertSite(SmallVectorImpl<T *> &Arguments, T *Site, bool Variadic) {
  Arguments.insert(Variadic ? Arguments.begin() : Arguments.end(), Site);
}

FunctionCallee replacementFor(Module &Module, const Found &Found, const Wrappers &Wrappers) {
  if (!Found.Entry)
    return Wrappers.twin(Found.callee());
  const FunctionType &Old = *Found.callee().getFunctionType();
  SmallVector<Type *, 4> Arguments(
      Old.params().take_front(std::min(Found.kept(), Old.getNumParams())));
  insertSite<Type>(Arguments, PointerType::getUnqual(Module.getContext()), Old.isVarArg());
  FunctionType *Type = FunctionType::get(Old.getReturnType(), Arguments, Old.isVarArg());
  FunctionCallee Replacement = Module.getOrInsertFunction(Found.Entry->Replacement, Type);
  if (auto *Declared = dyn_cast<Function>(Replacement.getCallee())) {
    // Every module is linked with its own copy.
    Declared->setVisibility(GlobalValue::HiddenVisibility);
    Declared->setDSOLocal(true);
  }
  return Replacement;
}

// The optimiser may treat the call as the one before: drop it with its free, know its size, assume that no
// other code sees its result.
void keepMeaning(CallBase &New, const CallBase &Old, const Found &Found) {
  LLVMContext &Context = New.getContext();
  if (!Found.Entry)
    return;
  StringRef Symbol = Found.Entry->Symbol;
  bool IsNew = Symbol.starts_with("_Zn");
  if (IsNew && !Old.hasFnAttr(Attribute::Builtin))
    return; // Only a new-expression may be left out, not a call of the operator.
  if (Symbol == "malloc" || Symbol == "calloc" || IsNew) {
    AllocFnKind Kind = AllocFnKind::Alloc;
    Kind |= Symbol == "calloc" ? AllocFnKind::Zeroed : AllocFnKind::Uninitialized;
    AttrBuilder Attributes(Context);
    Attributes.addAllocKindAttr(Kind);
    Attributes.addAttribute("alloc-family", IsNew ? Symbol.take_front(5) : "malloc");
    Attributes.addAttribute(Attribute::WillReturn);
    New.setAttributes(New.getAttributes().addFnAttributes(Context, Attributes));
  }
}

void replace(const Found &Found, FunctionCallee Replacement, Value *Site) {
  CallBase &Old = *Found.Call;
  SmallVector<Value *, 4> Arguments(Old.arg_begin(), Old.arg_begin() + Found.kept());
  insertSite(Arguments, Site, Found.isVariadic());
  SmallVector<OperandBundleDef, 1> Bundles;
  Old.getOperandBundlesAsDefs(Bundles);
  IRBuilder<> Builder(&Old);
  if (auto *Twin = dyn_cast<Function>(Replacement.getCallee()); Twin && Twin->hasExternalWeakLinkage()) {
    // The function itself gets the site as well: an argument more than it reads is harmless in the calling
    // conventions of x86-64 and aarch64, and one call is less code than two.
    Value *Chosen = Builder.CreateSelect(Builder.CreateIsNotNull(Twin), Twin, &Found.callee());
    Replacement = FunctionCallee(Replacement.getFunctionType(), Chosen);
  }
  CallBase *New;
  if (auto *Invoke = dyn_cast<InvokeInst>(&Old)) {
    New = Builder.CreateInvoke(Replacement, Invoke->getNormalDest(), Invoke->getUnwindDest(),
                               Arguments, Bundles);
  } else {
    auto *Call = Builder.CreateCall(Replacement, Arguments, Bundles);
    Call->setTailCallKind(cast<CallInst>(Old).getTailCallKind());
    New = Call;
  }
  AttributeList Attributes = Old.getAttributes();
  LLVMContext &Context = Old.getContext();
  SmallVector<AttributeSet, 4> OfArguments;
  for (unsigned I = 0; I < Found.kept(); ++I)
    OfArguments.push_back(Attributes.getParamAttrs(I));
  if (Found.isVariadic())
    OfArguments.insert(OfArguments.begin(), AttributeSet());
  AttributeSet OfCall = Attributes.getFnAttrs()
                            .removeAttribute(Context, Attribute::Builtin)
                            .removeAttribute(Context, Attribute::NoBuiltin);
  // What the declaration promised of its result still holds.
  const Function &Callee = Found.callee();
  AttributeSet OfResult =
      Attributes.getRetAttrs().addAttributes(Context, Callee.getAttributes().getRetAttrs());
  if (Callee.doesNotThrow())
    OfCall = OfCall.addAttribute(Context, Attribute::NoUnwind);
  New->setAttributes(AttributeList::get(Context, OfCall, OfResult, OfArguments));
  New->setCallingConv(Old.getCallingConv());
  New->copyMetadata(Old);
  keepMeaning(*New, Old, Found);
  New->takeName(&Old);
  Old.replaceAllUsesWith(New);
  Old.eraseFromParent();
}

void remark(CallBase &Call, const SiteKey &Key) {
  OptimizationRemark Remark("isotherm", "AllocationSite", &Call);
  Remark << "allocation site " << utohexstr(Key.id(), /*LowerCase=*/true, 16);
  Call.getContext().diagnose(Remark);
}

Wrappers wrappersOf(Module &Module) {
  SmallPtrSet<const Function *, 8> Found;
  if (options::findWrappers()) {
    Found = findWrappers(Module);
    // Where the link distinguishes contexts, calls of headers are such.
    if (!tellsContexts())
      for (const Function *Function : headerWrappers(Module))
        Found.insert(Function);
  }
  return Wrappers(options::wrappers(), std::move(Found));
}

} // namespace

PreservedAnalyses AllocationSites::run(Module &Module, ModuleAnalysisManager &) {
  Wrappers Wrappers = AtLink ? isotherm::Wrappers() : wrappersOf(Module);
  if (!AtLink)
    Wrappers.makeTwins(Module);
  SiteNamer Namer(options::root(), /*NamesSystem=*/AtLink);
  Descriptors Descriptors(Module);
  bool Changed = false;
  for (const Found &Found : find(Module, Wrappers)) {
    Value *Site = Wrappers::siteArgument(*Found.Call->getFunction());
    if (!Site) {
      std::optional<SiteKey> Key = Namer.name(*Found.Call);
      if (!Key)
        continue;
      remark(*Found.Call, *Key);
      bool IsMalloc = Found.Entry && Found.Entry->Symbol == "malloc";
      Site = Descriptors.make(*Key, Found.name(), IsMalloc);
    }
    replace(Found, replacementFor(Module, Found, Wrappers), Site);
    Changed = true;
  }
  return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace isotherm
