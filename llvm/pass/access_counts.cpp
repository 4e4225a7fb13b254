#include "access_counts.h"

#include "../sites/isotherm_accesses.h"
#include "accesses.h"

#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace isotherm {

namespace {

// Names and types of the inserted symbols; see ../sites/isotherm_accesses.h.
class Inserter {
public:
  explicit Inserter(Module &Module)
      : Context(Module.getContext()), Long(Type::getInt64Ty(Context)),
        Pointer(PointerType::getUnqual(Context)) {
    Countdown = dyn_cast_or_null<GlobalVariable>(Module.getNamedValue(ISOTHERM_COUNTDOWN));
    if (!Countdown)
      // Code generation makes a better model of it where the module becomes part of a program.
      Countdown = new GlobalVariable(Module, Long, /*isConstant=*/false,
                                     GlobalValue::ExternalLinkage, nullptr, ISOTHERM_COUNTDOWN,
                                     nullptr, GlobalValue::InitialExecTLSModel);
    Countdown->setVisibility(GlobalValue::HiddenVisibility);
    Countdown->setDSOLocal(true);
    Sample = declare(Module, ISOTHERM_SAMPLE);
    SampleRange = declare(Module, ISOTHERM_SAMPLE_RANGE);
    if (auto *Declared = dyn_cast<Function>(Sample.getCallee())) {
      Declared->addFnAttr(Attribute::Cold);
      Declared->setCallingConv(CallingConv::PreserveMost);
    }
  }

  void instrument(Function &Function) {
    SmallVector<BlockAccesses, 0> Blocks;
    Most = 0;
    Addresses = nullptr;
    for (BasicBlock &Block : Function) {
      BlockAccesses Found(Block);
      if (Found.Stretches.empty() && Found.Ranges.empty())
        continue;
      for (const Stretch &Stretch : Found.Stretches)
        Most = std::max(Most, size(Stretch));
      Blocks.push_back(std::move(Found));
    }
    if (Blocks.empty())
      return;
    // The optimiser's knowledge of the function's effects is no longer true.
    Function.setMemoryEffects(MemoryEffects::unknown());
    Function.removeFnAttr(Attribute::Speculatable);
    for (const BlockAccesses &Block : Blocks) {
      for (const Range &Range : Block.Ranges)
        count(Range);
      for (const Stretch &Stretch : Block.Stretches)
        count(Stretch);
    }
  }

private:
  FunctionCallee declare(Module &Module, StringRef Name) {
    FunctionCallee Callee =
        Module.getOrInsertFunction(Name, Type::getVoidTy(Context), Pointer, Long);
    if (auto *Declared = dyn_cast<Function>(Callee.getCallee())) {
      Declared->setVisibility(GlobalValue::HiddenVisibility);
      Declared->setDSOLocal(true);
      Declared->setDoesNotThrow();
    }
    return Callee;
  }

  static unsigned size(const Stretch &Stretch) {
    unsigned Count = 0;
    for (const Access &Access : Stretch)
      Count += Access.count();
    return Count;
  }

  void count(const Range &Range) {
    IRBuilder<> Builder(Range.By);
    Builder.CreateCall(SampleRange, {Range.Start, Builder.CreateZExtOrTrunc(Range.Bytes, Long)});
  }

  // Behind the last access of the stretch, when all addresses are known.
  void count(const Stretch &Stretch) {
    Instruction *Last = Stretch.back().By;
    IRBuilder<> Builder(Last->getNextNode());
    Builder.SetCurrentDebugLocation(Last->getDebugLoc());
    Value *Count = ConstantInt::get(Long, size(Stretch));
    Value *Place = Builder.CreateThreadLocalAddress(Countdown);
    Value *Left = Builder.CreateSub(Builder.CreateLoad(Long, Place), Count);
    Builder.CreateStore(Left, Place);
    Value *IsDue = Builder.CreateICmpSLT(Left, ConstantInt::get(Long, 0));
    Instruction *Rare =
        SplitBlockAndInsertIfThen(IsDue, &*Builder.GetInsertPoint(), /*Unreachable=*/false,
                                  MDBuilder(Context).createUnlikelyBranchWeights());
    Builder.SetInsertPoint(Rare);
    Builder.SetCurrentDebugLocation(Last->getDebugLoc());
    unsigned Index = 0;
    for (const Access &Access : Stretch)
      for (unsigned Lane = 0; Lane < Access.count(); ++Lane)
        Builder.CreateStore(address(Builder, Access, Lane), slot(Builder, Index++));
    CallInst *Call = Builder.CreateCall(Sample, {addresses(*Last->getFunction()), Count});
    Call->setCallingConv(CallingConv::PreserveMost);
  }

  // The address of one access, null where its mask excludes it.
  Value *address(IRBuilder<> &Builder, const Access &Access, unsigned Lane) {
    if (!Access.Address->getType()->isVectorTy())
      return again(Builder, Access);
    Value *Address = Builder.CreateExtractElement(Access.Address, Lane);
    if (!Access.Mask)
      return Address;
    Value *IsMade = Builder.CreateExtractElement(Access.Mask, Lane);
    return Builder.CreateSelect(IsMade, Address, ConstantPointerNull::get(Pointer));
  }

  // An address that is computed just before its access is computed once more, so that the access may keep it in
  // its own operand and no register holds it until here.
  Value *again(IRBuilder<> &Builder, const Access &Access) {
    auto *Computed = dyn_cast<GetElementPtrInst>(Access.Address);
    if (!Computed || Computed->getParent() != Access.By->getParent())
      return Access.Address;
    return Builder.Insert(Computed->clone());
  }

  // Room on the stack for the addresses of any stretch of the function.
  Value *addresses(Function &Function) {
    if (!Addresses) {
      BasicBlock &Entry = Function.getEntryBlock();
      IRBuilder<> Builder(&Entry, Entry.getFirstInsertionPt());
      Addresses = Builder.CreateAlloca(ArrayType::get(Pointer, Most));
    }
    return Addresses;
  }

  Value *slot(IRBuilder<> &Builder, unsigned Index) {
    Value *First = addresses(*Builder.GetInsertBlock()->getParent());
    return Builder.CreateConstInBoundsGEP1_32(Pointer, First, Index);
  }

  LLVMContext &Context;
  Type *Long;
  PointerType *Pointer;
  GlobalVariable *Countdown;
  FunctionCallee Sample;
  FunctionCallee SampleRange;
  // For the present function: the most accesses of a stretch, and the place of their addresses.
  unsigned Most = 0;
  AllocaInst *Addresses = nullptr;
};

// Code that may run before the thread has its variables, or that has no place for more.
SmallPtrSet<const Function *, 4> leftAlone(const Module &Module) {
  SmallPtrSet<const Function *, 4> Functions;
  for (const GlobalIFunc &IFunc : Module.ifuncs())
    if (const Function *Resolver = IFunc.getResolverFunction())
      Functions.insert(Resolver);
  for (const Function &Function : Module)
    if (Function.isDeclarationForLinker() || Function.hasFnAttribute(Attribute::Naked) ||
        Function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation))
      Functions.insert(&Function);
  return Functions;
}

} // namespace

PreservedAnalyses AccessCounts::run(Module &Module, ModuleAnalysisManager &) {
  SmallPtrSet<const Function *, 4> LeftAlone = leftAlone(Module);
  SmallVector<Function *, 16> Functions;
  for (Function &Function : Module)
    if (!LeftAlone.contains(&Function))
      Functions.push_back(&Function);
  if (Functions.empty() || Module.getNamedValue(ISOTHERM_SAMPLE))
    return PreservedAnalyses::all();
  Inserter Inserter(Module);
  for (Function *Function : Functions)
    Inserter.instrument(*Function);
  return PreservedAnalyses::none();
}

} // namespace isotherm
