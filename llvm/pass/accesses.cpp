#include "accesses.h"

#include "../sites/isotherm_accesses.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace isotherm {

namespace {

// The addresses of a stretch must be known at its end, and have a place on the stack.
constexpr unsigned MostOfStretch = 32;

// Whether the target of a pointer is worth a count. Only plain memory: a pointer of another address space means
// something else.
bool isCounted(const Value *Address) {
  const Type *Type = Address->getType()->getScalarType();
  if (Type->getPointerAddressSpace() != 0)
    return false;
  if (Address->getType()->isVectorTy())
    return true;
  const Value *Object = getUnderlyingObject(Address, /*MaxLookup=*/0);
  if (const auto *Argument = dyn_cast<llvm::Argument>(Object))
    return !Argument->hasByValAttr() && !Argument->hasSwiftErrorAttr();
  return !isa<AllocaInst>(Object);
}

} // namespace

unsigned Access::count() const {
  const auto *Vector = dyn_cast<FixedVectorType>(Address->getType());
  return Vector ? Vector->getNumElements() : 1;
}

BlockAccesses::BlockAccesses(BasicBlock &Block) {
  Stretches.emplace_back();
  for (Instruction &Instruction : Block) {
    auto *Call = dyn_cast<CallBase>(&Instruction);
    if (Call && !isa<IntrinsicInst>(Call) && !isGuaranteedToTransferExecutionToSuccessor(Call))
      Stretches.emplace_back();
    else if (!Instruction.hasMetadata(LLVMContext::MD_nosanitize))
      add(Instruction);
  }
  erase_if(Stretches, [](const Stretch &Stretch) { return Stretch.empty(); });
}

void BlockAccesses::add(Instruction &Instruction) {
  if (auto *Load = dyn_cast<LoadInst>(&Instruction))
    addAccess(Instruction, Load->getPointerOperand());
  else if (auto *Store = dyn_cast<StoreInst>(&Instruction))
    addAccess(Instruction, Store->getPointerOperand());
  else if (auto *Change = dyn_cast<AtomicRMWInst>(&Instruction))
    addAccess(Instruction, Change->getPointerOperand());
  else if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&Instruction))
    addAccess(Instruction, Exchange->getPointerOperand());
  else if (auto *Memory = dyn_cast<AnyMemIntrinsic>(&Instruction)) {
    if (auto *Transfer = dyn_cast<AnyMemTransferInst>(Memory))
      addRange(Instruction, Transfer->getRawSource(), Transfer->getLength());
    addRange(Instruction, Memory->getRawDest(), Memory->getLength());
  } else if (auto *Masked = dyn_cast<IntrinsicInst>(&Instruction)) {
    switch (Masked->getIntrinsicID()) {
    case Intrinsic::masked_load:
      return addAccess(Instruction, Masked->getArgOperand(0));
    case Intrinsic::masked_store:
      return addAccess(Instruction, Masked->getArgOperand(1));
    case Intrinsic::masked_gather:
      return addAccess(Instruction, Masked->getArgOperand(0), Masked->getArgOperand(2));
    case Intrinsic::masked_scatter:
      return addAccess(Instruction, Masked->getArgOperand(1), Masked->getArgOperand(3));
    default:
      return;
    }
  }
}

void BlockAccesses::addAccess(Instruction &By, Value *Address, Value *Mask) {
  // The number of accesses of a vector of unknown length is not known here.
  if (isa<ScalableVectorType>(Address->getType()) || !isCounted(Address))
    return;
  Access New = {&By, Address, Mask};
  unsigned Used = 0;
  for (const Access &Access : Stretches.back())
    Used += Access.count();
  if (Used > 0 && Used + New.count() > MostOfStretch)
    Stretches.emplace_back();
  Stretches.back().push_back(New);
}

void BlockAccesses::addRange(Instruction &By, Value *Start, Value *Bytes) {
  if (!isCounted(Start))
    return;
  auto *Known = dyn_cast<ConstantInt>(Bytes);
  if (!Known || Known->getValue().ugt(ISOTHERM_LINE_BYTES))
    Ranges.push_back({&By, Start, Bytes});
  // A copy of a small structure is a load and a store.
  else if (!Known->isZero())
    addAccess(By, Start);
}

} // namespace isotherm
