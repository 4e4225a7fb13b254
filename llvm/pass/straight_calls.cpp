#include "straight_calls.h"

#include "../sites/isotherm_free.h"
#include "descriptor.h"
#include "entry_points.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace isotherm {

namespace {

// A function that frees, and the pointer in its place. The forms of `operator delete` with an alignment or the
// tag `nothrow` are too rare to have one.
struct Freeing {
  StringRef Symbol;
  StringRef Pointer;
  // Arguments: the block, and its size where the form has one.
  unsigned Arguments;
};

const Freeing Table[] = {
    {"free", ISOTHERM_FREE_SYMBOL("free"), 1},
    {"_ZdlPv", ISOTHERM_FREE_SYMBOL("delete"), 1},
    {"_ZdaPv", ISOTHERM_FREE_SYMBOL("delete_array"), 1},
    {"_ZdlPvm", ISOTHERM_FREE_SYMBOL("delete_sized"), 2},
    {"_ZdaPvm", ISOTHERM_FREE_SYMBOL("delete_array_sized"), 2},
};

bool fits(const FunctionType &Type, const Freeing &Freeing) {
  return Type.getReturnType()->isVoidTy() && !Type.isVarArg() &&
         Type.getNumParams() == Freeing.Arguments && Type.getParamType(0)->isPointerTy() &&
         (Freeing.Arguments < 2 || Type.getParamType(1)->isIntegerTy(64));
}

Constant *freePointer(Module &Module, StringRef Name) {
  if (GlobalVariable *Known = Module.getNamedGlobal(Name))
    return Known;
  auto *Pointer = new GlobalVariable(Module, PointerType::getUnqual(Module.getContext()),
                                     /*isConstant=*/false, GlobalValue::ExternalLinkage, nullptr, Name);
  Pointer->setVisibility(GlobalValue::HiddenVisibility);
  Pointer->setDSOLocal(true);
  return Pointer;
}

// The calls of a function by its name, except in functions that are allocators themselves.
SmallVector<CallBase *, 32> callsOf(Function &Function) {
  SmallVector<CallBase *, 32> Calls;
  for (const Use &Use : Function.uses()) {
    auto *Call = dyn_cast<CallBase>(Use.getUser());
    if (Call && Call->isCallee(&Use) && Call->getFunctionType() == Function.getFunctionType() &&
        !entryPoint(Call->getFunction()->getName()))
      Calls.push_back(Call);
  }
  return Calls;
}

// The known memory effects of the calling functions stay true: nothing in the program writes the pointer. The
// load is atomic because the library writes the pointer while other threads use it; and then it stays separate
// from the call, which some processors (Zen 4) execute faster through a register than through memory.
void callThrough(Constant *Pointer, CallBase &Call) {
  LoadInst *Callee = IRBuilder<>(&Call).CreateAlignedLoad(PointerType::getUnqual(Call.getContext()),
                                                          Pointer, Align(sizeof(void *)));
  Callee->setAtomic(AtomicOrdering::Monotonic);
  Call.setCalledOperand(Callee);
  // For a call by name only.
  Call.removeFnAttr(Attribute::Builtin);
}

bool straightenFrees(Module &Module) {
  bool Changed = false;
  for (const Freeing &Freeing : Table) {
    Function *Function = Module.getFunction(Freeing.Symbol);
    if (!Function || !Function->isDeclarationForLinker() || !fits(*Function->getFunctionType(), Freeing))
      continue;
    for (CallBase *Call : callsOf(*Function)) {
      callThrough(freePointer(Module, Freeing.Pointer), *Call);
      Changed = true;
    }
  }
  return Changed;
}

// Only where the site is the call's own: only then its record has a pointer.
bool straightenMallocs(Module &Module) {
  Function *Function = Module.getFunction("isotherm_malloc");
  if (!Function)
    return false;
  bool Changed = false;
  for (CallBase *Call : callsOf(*Function)) {
    auto *Record = dyn_cast<GlobalVariable>(Call->getArgOperand(Call->arg_size() - 1));
    Constant *Pointer = Record ? mallocPointer(*Record) : nullptr;
    if (!Pointer)
      continue;
    callThrough(Pointer, *Call);
    Changed = true;
  }
  return Changed;
}

} // namespace

PreservedAnalyses StraightCalls::run(Module &Module, ModuleAnalysisManager &) {
  bool Frees = straightenFrees(Module);
  bool Mallocs = straightenMallocs(Module);
  return Frees || Mallocs ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace isotherm
