#include "found_wrappers.h"

#include "entry_points.h"
#include "source_place.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace isotherm {

namespace {

// A wrapper is copied whole, so only short functions count.
constexpr unsigned InstructionsMax = 200;

using FunctionSet = SmallPtrSet<const Function *, 8>;
using Values = SmallSetVector<const Value *, 16>;

// Functions whose result is the size of their text argument.
bool measuresText(const Function &Callee) {
  StringRef Name = Callee.getName();
  return Name == "strlen" || Name == "strnlen" || Name == "wcslen";
}

// The values stored in a local variable; false where they are unknown because its address is used elsewhere. At
// the beginning of the pipeline, every variable and argument is one.
bool stores(const AllocaInst &Variable, Values &Stored) {
  for (const User *User : Variable.users()) {
    if (auto *Store = dyn_cast<StoreInst>(User); Store && Store->getPointerOperand() == &Variable)
      Stored.insert(Store->getValueOperand());
    else if (auto *Call = dyn_cast<CallBase>(User); Call && Call->getCalledFunction() &&
             Call->getCalledFunction()->getName() == "posix_memalign" &&
             Call->getArgOperand(0) == &Variable)
      Stored.insert(Call);
    else if (!isa<LoadInst>(User) && !User->isDroppable() &&
             !(isa<CallBase>(User) && cast<CallBase>(User)->getIntrinsicID() != Intrinsic::not_intrinsic))
      return false;
  }
  return true;
}

// The sources of a value: arguments, constants, calls, and unknown ones.
Values origins(const Value &Of) {
  Values Seen, Ends;
  SmallVector<const Value *, 16> Left{&Of};
  auto Follow = [&](const Value *Value) {
    if (Seen.insert(Value))
      Left.push_back(Value);
  };
  Seen.insert(&Of);
  while (!Left.empty()) {
    const Value *Value = Left.pop_back_val();
    Values Stored;
    if (isa<PHINode, CastInst, BinaryOperator>(Value)) {
      for (const Use &Operand : cast<User>(Value)->operands())
        Follow(Operand);
    } else if (auto *Select = dyn_cast<SelectInst>(Value)) {
      Follow(Select->getTrueValue());
      Follow(Select->getFalseValue());
    } else if (auto *Place = dyn_cast<GetElementPtrInst>(Value)) {
      Follow(Place->getPointerOperand());
    } else if (auto *Field = dyn_cast<ExtractValueInst>(Value)) {
      Follow(Field->getAggregateOperand());
    } else if (auto *Call = dyn_cast<CallBase>(Value);
               Call && Call->getCalledFunction() &&
               (Call->getIntrinsicID() != Intrinsic::not_intrinsic || measuresText(*Call->getCalledFunction()))) {
      for (const Use &Argument : Call->args())
        Follow(Argument);
    } else if (auto *Load = dyn_cast<LoadInst>(Value); Load && isa<AllocaInst>(Load->getPointerOperand()) &&
               stores(*cast<AllocaInst>(Load->getPointerOperand()), Stored)) {
      for (const llvm::Value *Each : Stored)
        Follow(Each);
    } else {
      Ends.insert(Value);
    }
  }
  return Ends;
}

// Whether the size of an allocation comes from the arguments of the function around it. A call that copies a
// text has no size; its text is used instead.
bool sizeIsGiven(const CallBase &Call) {
  bool HasSize = any_of(Call.args(), [](const Use &Each) { return Each->getType()->isIntegerTy(); });
  return any_of(Call.args(), [&](const Use &Each) {
    return Each->getType()->isIntegerTy() == HasSize &&
           any_of(origins(*Each), [](const Value *End) { return isa<Argument>(End); });
  });
}

bool allocates(const CallBase &Call, const FunctionSet &Known) {
  const Function *Callee = Call.getCalledFunction();
  if (!Callee)
    return false;
  const EntryPoint *Entry = entryPoint(Callee->getName());
  return Known.contains(Callee) ||
         (Entry && Callee->isDeclarationForLinker() && Entry->fits(*Callee->getFunctionType()));
}

// Whether a function could be a wrapper, and could be copied.
bool isCandidate(const Function &Function) {
  return !Function.isDeclarationForLinker() && !Function.isInterposable() && !Function.isVarArg() &&
         Function.getReturnType()->isPointerTy() && !entryPoint(Function.getName()) &&
         Function.getInstructionCount() <= InstructionsMax && !isSystemFunction(Function) &&
         none_of(Function, [](const BasicBlock &Block) {
           return Block.hasAddressTaken() || Block.getTerminatingMustTailCall();
         });
}

bool isWrapper(const Function &Function, const FunctionSet &Known) {
  bool Found = false;
  for (const BasicBlock &Block : Function) {
    auto *Return = dyn_cast<ReturnInst>(Block.getTerminator());
    if (!Return)
      continue;
    for (const Value *End : origins(*Return->getReturnValue())) {
      auto *Call = dyn_cast<CallBase>(End);
      if (Call && allocates(*Call, Known))
        Found |= sizeIsGiven(*Call);
      else if (Call && (!Call->getCalledFunction() || Call->getCalledFunction() == &Function))
        continue; // An allocator that the caller chose, or the function itself.
      else if (!isa<Argument, ConstantPointerNull, UndefValue>(End))
        return false;
    }
  }
  return Found;
}

} // namespace

FunctionSet findWrappers(const Module &Module) {
  SmallVector<const Function *, 32> Candidates;
  for (const Function &Function : Module)
    if (isCandidate(Function))
      Candidates.push_back(&Function);
  FunctionSet Known;
  // Again while there are new ones: a wrapper may call another.
  for (size_t Before = ~size_t(0); Before != Known.size();) {
    Before = Known.size();
    for (const Function *Function : Candidates)
      if (!Known.contains(Function) && isWrapper(*Function, Known))
        Known.insert(Function);
  }
  return Known;
}

bool isDeclaredAllocator(const Function &Function) {
  return Function.isDeclaration() && !Function.isVarArg() && Function.getReturnType()->isPointerTy() &&
         Function.hasFnAttribute(Attribute::AllocSize) && !entryPoint(Function.getName());
}

} // namespace isotherm
