#include "context_graph.h"

#include "../sites/isotherm_contexts.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <utility>

using namespace llvm;

namespace isotherm {

namespace {

// Most records of 64 bytes, zero until used, of one program: 16 MiB of addresses. Where there are more
// contexts, the sites with most of them are distinguished by fewer calls.
const uint64_t MostRecords = 1 << 18;

const char *const ThroughPointers = "it is called through pointers";

// Means "more than fits".
const uint64_t Uncountable = uint64_t(1) << 40;

bool hasMustTailCall(const Function &Function) {
  for (const BasicBlock &Block : Function)
    if (Block.getTerminatingMustTailCall())
      return true;
  return false;
}

// The certain callee of a call, through aliases that cannot be replaced.
Function *certainCallee(CallBase &Call) {
  Value *Called = Call.getCalledOperand();
  while (auto *Alias = dyn_cast<GlobalAlias>(Called)) {
    if (Alias->isInterposable())
      return nullptr;
    Called = Alias->getAliasee();
  }
  return dyn_cast<Function>(Called);
}

// The uses of a function, those through its aliases included.
void appendUses(Value &Function, SmallVectorImpl<Use *> &Uses) {
  for (Use &Use : Function.uses()) {
    if (auto *Alias = dyn_cast<GlobalAlias>(Use.getUser())) {
      if (!Alias->isInterposable())
        appendUses(*Alias, Uses);
      continue;
    }
    // An address of a label within: no way to call it.
    if (!isa<BlockAddress>(Use.getUser()))
      Uses.push_back(&Use);
  }
}

// The call behind a use of a function, if its context can be known.
CallBase *tellingCall(Use &Use, const Function &Function, ContextWay Way) {
  auto *Call = dyn_cast<CallBase>(Use.getUser());
  if (!Call || isa<CallBrInst>(Call) || !Call->isCallee(&Use) || Call->getFunctionType() != Function.getFunctionType() ||
      Call->getCallingConv() != Function.getCallingConv())
    return nullptr;
  // Such a call must have the arguments that its own function has; copies have.
  return Call->isMustTailCall() && Way == ContextWay::Argument ? nullptr : Call;
}

bool isKnownToProgram(const Function &Function) {
  SmallVector<Use *, 16> Uses;
  appendUses(const_cast<llvm::Function &>(Function), Uses);
  return all_of(Uses, [&](Use *Use) {
    auto *Call = dyn_cast<CallBase>(Use->getUser());
    return Call && Call->isCallee(Use);
  });
}

std::string unknownCallers(const Function &Function) {
  if (!Function.hasLocalLinkage())
    return Function.getName() == "main" ? "the program begins here"
                                        : "it can be called from outside of the program";
  return isKnownToProgram(Function) ? "" : ThroughPointers;
}

std::string refusal(const Function &Function, ContextWay Way) {
  if (Function.isDeclaration())
    return "it is not part of the program";
  if (Function.isInterposable())
    return "the loader may choose another definition";
  if (Function.hasFnAttribute(Attribute::Naked))
    return "it is written in assembly";
  if (Function.isPresplitCoroutine())
    return "it is a coroutine";
  for (const Argument &Argument : Function.args())
    if (Argument.hasAttribute(Attribute::InAlloca) || Argument.hasAttribute(Attribute::SwiftSelf) ||
        Argument.hasAttribute(Attribute::SwiftError))
      return "its calling convention takes no more arguments";
  if (Way == ContextWay::Argument && hasMustTailCall(Function))
    return "it must end in a call with the same arguments";
  if (hasComputedGoto(Function)) {
    if (Way == ContextWay::Clone)
      return "it jumps to addresses of labels, so it cannot be copied";
    if (!Function.hasLocalLinkage() || !isKnownToProgram(Function))
      return "it jumps to addresses of labels and is called through pointers";
  }
  return "";
}

} // namespace

bool hasComputedGoto(const Function &Function) {
  return any_of(Function, [](const BasicBlock &Block) { return Block.hasAddressTaken(); });
}

ContextGraph::ContextGraph(Module &Module, const LinkOptions &Options)
    : Frames(Options.Root), Indirect(Module), Way(Options.Way), Levels(Options.levels()),
      FieldBits(Levels < 2 ? 32 : std::min(32u, 64 / Levels)) {
  findAllocations(Module);
  findCallers();
  count();
  giveRecords();
}

unsigned ContextGraph::add(Function &Function) {
  auto [Entry, IsNew] = Numbers.try_emplace(&Function, Functions.size());
  if (IsNew) {
    ContextFunction New;
    New.Function = &Function;
    New.Name = Function.getName();
    New.Refused = refusal(Function, Way);
    New.Unknown = unknownCallers(Function);
    Functions.push_back(std::move(New));
  }
  return Entry->second;
}

void ContextGraph::ask(unsigned Function, unsigned Wanted) {
  if (Functions[Function].Levels >= Wanted)
    return;
  Functions[Function].Levels = Wanted;
  Asked.push_back(Function);
}

void ContextGraph::findAllocations(Module &Module) {
  for (GlobalVariable &Global : Module.globals()) {
    if (!Global.getName().starts_with("isotherm_site.") ||
        Global.getSection() != ISOTHERM_SITE_SECTION || !Global.hasInitializer())
      continue;
    std::map<std::pair<unsigned, std::vector<unsigned>>, std::vector<Use *>> ByPlace;
    for (Use &Use : Global.uses())
      if (auto *User = dyn_cast<Instruction>(Use.getUser())) {
        FrameList Around = Frames.around(*User);
        Around.truncate(std::min<size_t>(Around.size(), Levels));
        unsigned Function = add(*User->getFunction());
        ByPlace[{Function, std::vector<unsigned>(Around.begin(), Around.end())}].push_back(&Use);
      }
    for (auto &[Place, Uses] : ByPlace) {
      ContextAllocation Allocation;
      Allocation.Site = &Global;
      Allocation.Function = Place.first;
      Allocation.Frames.assign(Place.second.begin(), Place.second.end());
      Allocation.Uses = std::move(Uses);
      Allocation.Level = Levels - Allocation.Frames.size();
      ask(Allocation.Function, Allocation.Level);
      Allocations.push_back(std::move(Allocation));
    }
  }
}

void ContextGraph::findCallers() {
  while (!Asked.empty()) {
    unsigned Number = Asked.back();
    Asked.pop_back();
    if (!Functions[Number].Refused.empty())
      continue;
    Function &Function = *Functions[Number].Function;
    if (Function.hasAddressTaken() && !std::exchange(Functions[Number].Guessed, true)) {
      std::string Why = Indirect.callByName(Function);
      if (!Why.empty() && Functions[Number].Unknown == ThroughPointers)
        Functions[Number].Unknown += " " + Why;
    }
    SmallVector<Use *, 16> Uses;
    appendUses(Function, Uses);
    for (Use *Use : Uses) {
      CallBase *Call = tellingCall(*Use, Function, Way);
      if (Call && certainCallee(*Call) == &Function)
        addCaller(Number, *Call);
      else if (Functions[Number].Unknown.empty())
        Functions[Number].Unknown = "it is called in ways that cannot take a context along";
    }
  }
}

void ContextGraph::addCaller(unsigned Callee, CallBase &Instruction) {
  FrameList List = Frames.ofCall(Instruction);
  unsigned Caller = add(*Instruction.getFunction());
  std::string Name = std::to_string(Caller) + '>' + std::to_string(Callee);
  for (unsigned Frame : List)
    Name += ',' + std::to_string(Frame);
  unsigned Asked = Functions[Callee].Levels;
  if (Asked > List.size())
    ask(Caller, Asked - List.size());
  if (!Known.insert(&Instruction).second)
    return;
  auto [Entry, IsNew] = CallsByName.try_emplace(Name, Calls.size());
  if (IsNew) {
    Functions[Callee].Incoming.push_back(Calls.size());
    Calls.push_back({Caller, Callee, List, {}, {}});
  }
  Calls[Entry->second].Instructions.push_back(&Instruction);
}

void ContextGraph::count() {
  for (ContextFunction &Function : Functions) {
    Function.Paths.assign(Levels + 1, 1);
    Function.Possible.assign(Levels + 1, 1);
  }
  for (unsigned Level = 1; Level <= Levels; ++Level)
    for (ContextFunction &Function : Functions) {
      uint64_t Paths = 1, Possible = Function.mayBeginContexts();
      for (unsigned Number : Function.Incoming) {
        ContextCall &Call = Calls[Number];
        Call.FirstNumbers.push_back(Paths);
        unsigned Length = Call.Frames.size();
        const ContextFunction &Caller = Functions[Call.Caller];
        Paths += Length >= Level ? 1 : Caller.Paths[Level - Length];
        Possible += Length >= Level ? 1 : Caller.Possible[Level - Length];
        Paths = std::min(Paths, Uncountable);
        Possible = std::min(Possible, Uncountable);
      }
      Function.Paths[Level] = Paths;
      Function.Possible[Level] = Possible;
    }
}

void ContextGraph::giveRecords() {
  auto RecordsOf = [&](const ContextAllocation &Allocation) {
    return Functions[Allocation.Function].Paths[Allocation.Level];
  };
  uint64_t Total = 0;
  for (ContextAllocation &Allocation : Allocations) {
    while (Allocation.Level > 0 && (!fits(Functions[Allocation.Function], Allocation.Level) ||
                                    RecordsOf(Allocation) > MostRecords))
      --Allocation.Level;
    Total += RecordsOf(Allocation);
  }
  while (Total > MostRecords) {
    auto Largest = std::max_element(
        Allocations.begin(), Allocations.end(),
        [&](const auto &A, const auto &B) { return RecordsOf(A) < RecordsOf(B); });
    if (Largest->Level == 0)
      break;
    Total -= RecordsOf(*Largest);
    --Largest->Level;
    Total += RecordsOf(*Largest);
  }
  for (ContextAllocation &Allocation : Allocations) {
    Allocation.FirstRecord = Records;
    Allocation.Records = RecordsOf(Allocation);
    Records += Allocation.Records;
  }
}

bool ContextGraph::fits(const ContextFunction &Function, unsigned Level) const {
  return Level == 0 || (Level * FieldBits <= 64 && Function.Paths[Level] <= uint64_t(1) << FieldBits);
}

uint64_t ContextGraph::word(const ContextCall &Call) const {
  const ContextFunction &Callee = Functions[Call.Callee];
  uint64_t Word = 0;
  for (unsigned Level = 1; Level <= Callee.Levels && fits(Callee, Level); ++Level)
    Word |= Call.FirstNumbers[Level - 1] << ((Level - 1) * FieldBits);
  return Word;
}

uint64_t ContextGraph::calleeWord(const ContextCall &Call, uint64_t CallerWord) const {
  unsigned Shift = Call.Frames.size() * FieldBits;
  return (Shift < 64 ? CallerWord << Shift : 0) + word(Call);
}

uint64_t ContextGraph::number(const ContextAllocation &Allocation, uint64_t Word) const {
  if (Allocation.Level == 0)
    return 0;
  uint64_t Field = Word >> ((Allocation.Level - 1) * FieldBits);
  return FieldBits == 64 ? Field : Field & ((uint64_t(1) << FieldBits) - 1);
}

} // namespace isotherm
