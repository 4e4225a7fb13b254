#include "indirect_calls.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/CallPromotionUtils.h"

#include <optional>

using namespace llvm;

namespace isotherm {

namespace {

// Most functions of the type: each needs a comparison, and with more of them most comparisons fail.
const unsigned FunctionsMost = 3;
// Most calls: each call through a pointer becomes two, so a type that is called everywhere is left out.
const size_t CallsMost = 64;
// Means no place in a table.
const unsigned Anywhere = ~0u;

// Tables of virtual functions, those in use while an object is constructed included.
bool isTable(const GlobalVariable &Global) {
  return (Global.getName().starts_with("_ZTV") || Global.getName().starts_with("_ZTC")) &&
         Global.hasInitializer();
}

const Function *functionOf(const Value &Entry) {
  return dyn_cast<Function>(Entry.stripPointerCastsAndAliases());
}

// Whether an address is in tables only.
bool isInTablesOnly(const Value &Address) {
  return all_of(Address.uses(), [](const Use &Use) {
    const User *User = Use.getUser();
    if (auto *Call = dyn_cast<CallBase>(User))
      return Call->isCallee(&Use);
    if (auto *Table = dyn_cast<GlobalVariable>(User))
      return isTable(*Table);
    return isa<BlockAddress>(User) ||
           (isa<ConstantAggregate, ConstantExpr, GlobalAlias>(User) && isInTablesOnly(*User));
  });
}

// The place from which a virtual call loads its function: object -> table -> function. Other structures of
// pointers look the same, so it may not be a virtual call.
std::optional<unsigned> placeOf(const CallBase &Call, const DataLayout &Layout) {
  auto *Loaded = dyn_cast<LoadInst>(Call.getCalledOperand());
  if (!Loaded)
    return std::nullopt;
  APInt Offset(Layout.getIndexTypeSizeInBits(Loaded->getPointerOperandType()), 0);
  const Value *Table = Loaded->getPointerOperand()->stripAndAccumulateConstantOffsets(
      Layout, Offset, /*AllowNonInbounds=*/true);
  unsigned Size = Layout.getPointerSize();
  if (!isa<LoadInst>(Table) || Offset.isNegative() || Offset.urem(Size) != 0 || Offset.uge(1 << 16))
    return std::nullopt;
  return Offset.udiv(Size).getZExtValue();
}

} // namespace

IndirectCalls::IndirectCalls(Module &Module) {
  for (const GlobalVariable &Global : Module.globals())
    if (isTable(Global))
      addTable(Global);
  for (Function &Function : Module) {
    if (!Function.isDeclaration() && Function.hasAddressTaken() && !isInTablesOnly(Function))
      Functions[{Function.getFunctionType(), Anywhere}].insert(&Function);
    for (BasicBlock &Block : Function)
      for (Instruction &Instruction : Block)
        if (auto *Call = dyn_cast<CallBase>(&Instruction);
            Call && Call->isIndirectCall() && !Call->isMustTailCall() && !isa<CallBrInst>(Call)) {
          Calls[{Call->getFunctionType(), Anywhere}].push_back(Call);
          if (std::optional<unsigned> Place = placeOf(*Call, Module.getDataLayout()))
            Calls[{Call->getFunctionType(), *Place}].push_back(Call);
        }
  }
}

// A table has a part for each base class. Offsets and the type come first, and an object points behind them:
//
//     offset to the top, type | function 0 | function 1 | ...
void IndirectCalls::addTable(const GlobalVariable &Table) {
  for (const Use &Part : Table.getInitializer()->operands()) {
    auto *Entries = dyn_cast<ConstantArray>(Part);
    if (!Entries)
      continue;
    std::optional<unsigned> First;
    for (unsigned Number = 0; Number < Entries->getNumOperands(); ++Number) {
      const Function *Found = functionOf(*Entries->getOperand(Number));
      if (!Found)
        continue;
      if (!First)
        First = Number;
      unsigned Place = Number - *First;
      if (!Found->isDeclaration() &&
          Functions[{Found->getFunctionType(), Place}].insert(Found).second)
        Places[Found].push_back(Place);
    }
  }
}

std::string IndirectCalls::callByName(Function &Function) {
  FunctionType *Type = Function.getFunctionType();
  // Before its comparison with the callee.
  bool IsElsewhere = !isInTablesOnly(Function);
  std::string Why;
  for (unsigned Place : Places.lookup(&Function))
    if (std::string Refused = callByName(Function, {Type, Place}); !Refused.empty())
      Why = Refused + " at its place in tables of virtual functions";
  if (IsElsewhere)
    if (std::string Refused = callByName(Function, {Type, Anywhere}); !Refused.empty())
      Why = Refused;
  return Why;
}

std::string IndirectCalls::callByName(Function &Function, Key Key) {
  auto Found = Calls.find(Key);
  if (Found == Calls.end())
    return "";
  if (size_t Count = Functions[Key].size(); Count > FunctionsMost)
    return "that may lead to " + std::to_string(Count) + " functions of its type";
  if (Found->second.size() > CallsMost)
    return "by " + std::to_string(Found->second.size()) + " calls that may lead to functions of its type";
  for (CallBase *Call : Found->second)
    if (Call->getCallingConv() == Function.getCallingConv() && isLegalToPromote(*Call, &Function) &&
        Asked.insert({Call, &Function}).second)
      promoteCallWithIfThenElse(*Call, &Function);
  return "";
}

} // namespace isotherm
