#include "context_body.h"

#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace isotherm {

ContextBody ContextBody::copied(llvm::Function &Copy, Value &CopyWord,
                                ValueToValueMapTy &Map) const {
  ContextBody Result = *this;
  Result.Code = &Copy;
  Result.Word = &CopyWord;
  for (auto &[Call, Number] : Result.Calls)
    Call = cast<CallBase>(Map[Call]);
  for (Operand &Site : Result.Sites)
    Site.User = cast<Instruction>(Map[Site.User]);
  return Result;
}

std::vector<ContextBody> originalBodies(const ContextGraph &Graph) {
  std::vector<ContextBody> Bodies;
  for (unsigned Number = 0; Number < Graph.Functions.size(); ++Number) {
    llvm::Function *Code = Graph.Functions[Number].Function;
    Value *Unknown = ConstantInt::get(Type::getInt64Ty(Code->getContext()), 0);
    Bodies.push_back({Number, Code, Unknown, {}, {}});
  }
  for (unsigned Number = 0; Number < Graph.Calls.size(); ++Number)
    for (CallBase *Call : Graph.Calls[Number].Instructions)
      Bodies[Graph.Calls[Number].Caller].Calls.push_back({Call, Number});
  for (unsigned Number = 0; Number < Graph.Allocations.size(); ++Number)
    for (Use *Use : Graph.Allocations[Number].Uses)
      Bodies[Graph.Allocations[Number].Function].Sites.push_back(
          {cast<Instruction>(Use->getUser()), Use->getOperandNo(), Number});
  return Bodies;
}

namespace {

// The record of the context behind a word.
Value *record(const ContextGraph &Graph, const ContextAllocation &Allocation, Value *Word,
              GlobalVariable &Records, IRBuilder<> &Builder) {
  Value *Index = Builder.getInt64(0);
  if (auto *Known = dyn_cast<ConstantInt>(Word)) {
    Index = Builder.getInt64(Graph.number(Allocation, Known->getZExtValue()));
  } else if (Allocation.Level > 0) {
    Value *Field = Builder.CreateLShr(Word, (Allocation.Level - 1) * Graph.fieldBits());
    Index = Builder.CreateAnd(Field, (uint64_t(1) << Graph.fieldBits()) - 1);
  }
  Index = Builder.CreateAdd(Index, Builder.getInt64(Allocation.FirstRecord));
  return Builder.CreateInBoundsGEP(Records.getValueType(), &Records,
                                   {Builder.getInt64(0), Index});
}

} // namespace

void placeRecords(const ContextGraph &Graph, const ContextBody &Body, GlobalVariable &Records) {
  // A phi takes one value from each block, so all of a site take one.
  DenseMap<unsigned, Value *> InEntry;
  for (const ContextBody::Operand &Site : Body.Sites) {
    const ContextAllocation &Allocation = Graph.Allocations[Site.Allocation];
    if (!Allocation.hasContexts())
      continue;
    if (!isa<PHINode>(Site.User)) {
      IRBuilder<> Builder(Site.User);
      Site.User->setOperand(Site.Index,
                            record(Graph, Allocation, Body.Word, Records, Builder));
      continue;
    }
    Value *&Known = InEntry[Site.Allocation];
    if (!Known) {
      BasicBlock &Entry = Body.Code->getEntryBlock();
      IRBuilder<> Builder(&Entry, Entry.getFirstInsertionPt());
      Known = record(Graph, Allocation, Body.Word, Records, Builder);
    }
    Site.User->setOperand(Site.Index, Known);
  }
}

} // namespace isotherm
