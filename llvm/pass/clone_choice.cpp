#include "clone_choice.h"

#include "../sites/isotherm_contexts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"

#include <functional>
#include <tuple>

using namespace llvm;

namespace isotherm {

namespace {

// Most paths that are considered.
const size_t MostCandidates = 1 << 20;

} // namespace

CloneChoice::CloneChoice(const ContextGraph &Graph, uint64_t MostInstructions,
                         const DenseMap<uint64_t, double> &Worth)
    : Copies(Graph.Functions.size()), LeftOutOf(Graph.Allocations.size()), Graph(Graph),
      Worth(Worth), Left(MostInstructions), Replaced(Graph.Functions.size()) {
  for (const ContextFunction &Function : Graph.Functions)
    Sizes.push_back(Function.Function->getInstructionCount());
  for (unsigned Number = 0; Number < Graph.Allocations.size(); ++Number) {
    CallPath Calls;
    extend(Number, Graph.Allocations[Number].Function, Graph.Allocations[Number].Level, Calls);
  }
  choose();
}

// The function that a path begins in.
unsigned CloneChoice::outermost(unsigned Function, const CallPath &Calls) const {
  return Calls.empty() ? Function : Graph.Calls[Calls.back()].Caller;
}

CallPath CloneChoice::withCertain(unsigned Function, CallPath Calls) const {
  // Functions that call only each other form a cycle.
  for (unsigned Round = 0; Round < Graph.levels(); ++Round) {
    const ContextFunction &Begin = Graph.Functions[outermost(Function, Calls)];
    if (!Begin.hasOneCaller())
      break;
    Calls.push_back(Begin.Incoming.front());
  }
  return Calls;
}

CallPath CloneChoice::withoutCertain(CallPath Calls) const {
  while (!Calls.empty() && Graph.Functions[Graph.Calls[Calls.back()].Callee].hasOneCaller())
    Calls.pop_back();
  return Calls;
}

// All paths of at most the given number of further calls, the shorter ones first.
void CloneChoice::extend(unsigned Allocation, unsigned Function, unsigned Level, CallPath &Calls) {
  if (Level == 0 || Candidates.size() >= MostCandidates)
    return;
  const size_t Before = Calls.size();
  for (unsigned Number : Graph.Functions[Function].Incoming) {
    unsigned Rest = Level;
    for (unsigned Next = Number;;) {
      const ContextCall &Call = Graph.Calls[Next];
      Calls.push_back(Next);
      Rest -= std::min<unsigned>(Rest, Call.Frames.size());
      if (Rest == 0 || !Graph.Functions[Call.Caller].hasOneCaller())
        break;
      Next = Graph.Functions[Call.Caller].Incoming.front();
    }
    unsigned Begin = outermost(Function, Calls);
    bool Whole = Rest == 0 || Graph.Functions[Begin].mayBeginContexts();
    Candidates.push_back(
        {Allocation, Calls, worth(Graph.Allocations[Allocation], Calls), 0, Whole});
    extend(Allocation, Begin, Rest, Calls);
    Calls.resize(Before);
  }
}

double CloneChoice::worth(const ContextAllocation &Allocation, const CallPath &Calls) const {
  auto *Record = cast<ConstantStruct>(Allocation.Site->getInitializer());
  uint64_t Id = cast<ConstantInt>(Record->getOperand(0))->getZExtValue();
  FrameList Frames = Allocation.Frames;
  for (unsigned Call : Calls)
    Frames.append(Graph.Calls[Call].Frames.begin(), Graph.Calls[Call].Frames.end());
  Frames.truncate(std::min<size_t>(Frames.size(), Graph.levels()));
  for (unsigned Frame : Frames)
    Id = isotherm_longer_context(Id, Graph.Frames.all()[Frame].Hash);
  return Worth.lookup(Id);
}

// Whether a function has a copy for a path, or copies for all its extensions.
bool CloneChoice::has(unsigned Function, const CallPath &Calls) const {
  return Calls.empty() || Copies[Function].count(Calls) || isCovered(Function, Calls);
}

// Whether there are copies for all extensions of a path, so that a copy for the path itself is never called.
bool CloneChoice::isCovered(unsigned Function, const CallPath &Calls) const {
  CallPath Longer = withCertain(Function, Calls);
  const ContextFunction &Begin = Graph.Functions[outermost(Function, Longer)];
  if (Begin.mayBeginContexts() || Longer.size() >= Graph.levels() ||
      Copies[Function].size() < Begin.Incoming.size())
    return false;
  return all_of(Begin.Incoming, [&](unsigned Call) {
    CallPath Next = Longer;
    Next.push_back(Call);
    return has(Function, Next);
  });
}

// The missing copies for a path: of the function that allocates and of those between, each for the rest of the
// path.
std::vector<std::pair<unsigned, CallPath>> CloneChoice::missing(const Candidate &Candidate) const {
  std::vector<std::pair<unsigned, CallPath>> Missing;
  unsigned Function = Graph.Allocations[Candidate.Allocation].Function;
  for (auto Rest = Candidate.Calls.begin(); Rest != Candidate.Calls.end(); ++Rest) {
    CallPath Calls = withoutCertain(CallPath(Rest, Candidate.Calls.end()));
    if (!has(Function, Calls))
      Missing.emplace_back(Function, std::move(Calls));
    Function = Graph.Calls[*Rest].Caller;
  }
  return Missing;
}

uint64_t CloneChoice::cost(const Candidate &Candidate) const {
  uint64_t Cost = 0;
  for (const auto &[Function, Calls] : missing(Candidate))
    Cost += Sizes[Function];
  return Cost;
}

// Instructions that the copy makes superfluous are added back to the growth: the last copy of a function costs
// nothing, because the original is removed.
void CloneChoice::take(unsigned Function, CallPath Calls) {
  Copies[Function].insert(Calls);
  Left -= Sizes[Function];
  while (!Calls.empty()) {
    Calls.pop_back();
    Calls = withoutCertain(std::move(Calls));
    if (!isCovered(Function, Calls))
      return;
    bool WasThere = Calls.empty() ? !Replaced[Function] : Copies[Function].erase(Calls) > 0;
    if (Calls.empty())
      Replaced[Function] = true;
    if (WasThere)
      Left += Sizes[Function];
  }
}

void CloneChoice::choose() {
  for (Candidate &Candidate : Candidates)
    Candidate.Cost = cost(Candidate);
  // The numbers at the end order equal values, so that each build is the same.
  sort(Candidates, [](const Candidate &A, const Candidate &B) {
    auto Key = [](const Candidate &C) {
      return std::make_tuple(-C.Worth, C.Cost, C.Calls.size(), C.Allocation, std::cref(C.Calls));
    };
    return Key(A) < Key(B);
  });
  for (const Candidate &Candidate : Candidates) {
    if (cost(Candidate) > Left) {
      LeftOutOf[Candidate.Allocation] += Candidate.Whole;
      continue;
    }
    for (auto &[Function, Calls] : missing(Candidate))
      take(Function, Calls);
    Told += Candidate.Whole;
  }
}

} // namespace isotherm
