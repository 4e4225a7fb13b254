#include "context_clones.h"

#include "../sites/isotherm_contexts.h"
#include "context_body.h"

#include "llvm/Transforms/Utils/Cloning.h"

#include <functional>
#include <map>
#include <tuple>

using namespace llvm;

namespace isotherm {

namespace {

// Calls from the inside out.
using Path = std::vector<unsigned>;

// A path to an allocation that could be told apart.
struct Candidate {
  unsigned Allocation;
  Path Calls;
  double Worth;
  uint64_t Cost;
  // Whether a context may end here: not only on the way to longer ones.
  bool Whole;
};

// More paths are not looked at.
const size_t MostCandidates = 1 << 20;

class Cloner {
public:
  Cloner(ContextGraph &Graph, const DenseMap<uint64_t, double> &Worth)
      : Graph(Graph), Worth(Worth), Versions(Graph.Functions.size()) {
    for (const ContextFunction &Function : Graph.Functions)
      Sizes.push_back(Function.Function->getInstructionCount());
    LeftOutOf.resize(Graph.Allocations.size());
  }

  void choose(uint64_t MostInstructions);
  void rewrite(GlobalVariable &Records);

  uint64_t Told = 0;
  uint64_t Copies = 0;
  std::vector<uint64_t> LeftOutOf;

private:
  void extend(unsigned Allocation, unsigned Function, unsigned Level, Path &Calls);
  uint64_t missing(const Candidate &Candidate, bool Add);
  double worth(const ContextAllocation &Allocation, const Path &Calls) const;
  uint64_t wordOf(const Path &Calls) const;
  Function *version(unsigned Function, const Path &Calls) const;

  ContextGraph &Graph;
  const DenseMap<uint64_t, double> &Worth;
  std::vector<uint64_t> Sizes;
  std::vector<Candidate> Candidates;
  // The copies of each function, by the paths that lead to them; null until they are made.
  std::vector<std::map<Path, llvm::Function *>> Versions;
};

// All paths of at most so many more calls, the shorter ones first.
void Cloner::extend(unsigned Allocation, unsigned Function, unsigned Level, Path &Calls) {
  if (Level == 0 || Candidates.size() >= MostCandidates)
    return;
  for (unsigned Number : Graph.Functions[Function].Incoming) {
    const ContextCall &Call = Graph.Calls[Number];
    unsigned Length = Call.Frames.size();
    bool Whole = Length >= Level || Graph.Functions[Call.Caller].mayBeginContexts();
    Calls.push_back(Number);
    Candidates.push_back(
        {Allocation, Calls, worth(Graph.Allocations[Allocation], Calls), 0, Whole});
    extend(Allocation, Call.Caller, Length >= Level ? 0 : Level - Length, Calls);
    Calls.pop_back();
  }
}

double Cloner::worth(const ContextAllocation &Allocation, const Path &Calls) const {
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

// Instructions of the copies that a path needs and that are not there: of the function that
// allocates and of those between, each for the rest of the path.
uint64_t Cloner::missing(const Candidate &Candidate, bool Add) {
  uint64_t Cost = 0;
  unsigned Function = Graph.Allocations[Candidate.Allocation].Function;
  for (auto Rest = Candidate.Calls.begin(); Rest != Candidate.Calls.end(); ++Rest) {
    Path Calls(Rest, Candidate.Calls.end());
    if (!Versions[Function].count(Calls)) {
      Cost += Sizes[Function];
      if (Add)
        Versions[Function][Calls] = nullptr;
    }
    Function = Graph.Calls[*Rest].Caller;
  }
  return Cost;
}

void Cloner::choose(uint64_t MostInstructions) {
  for (unsigned Number = 0; Number < Graph.Allocations.size(); ++Number) {
    Path Calls;
    extend(Number, Graph.Allocations[Number].Function, Graph.Allocations[Number].Level, Calls);
  }
  for (Candidate &Candidate : Candidates)
    Candidate.Cost = missing(Candidate, /*Add=*/false);
  // The numbers at the end make an order of what is equal, so that each build is the same.
  sort(Candidates, [](const Candidate &A, const Candidate &B) {
    auto Key = [](const Candidate &C) {
      return std::make_tuple(-C.Worth, C.Calls.size(), C.Cost, C.Allocation, std::cref(C.Calls));
    };
    return Key(A) < Key(B);
  });
  uint64_t Left = MostInstructions;
  for (const Candidate &Candidate : Candidates) {
    uint64_t Cost = missing(Candidate, /*Add=*/false);
    if (Cost > Left) {
      LeftOutOf[Candidate.Allocation] += Candidate.Whole;
      continue;
    }
    Left -= Cost;
    missing(Candidate, /*Add=*/true);
    Told += Candidate.Whole;
  }
}

uint64_t Cloner::wordOf(const Path &Calls) const {
  uint64_t Word = 0;
  for (auto Call = Calls.rbegin(); Call != Calls.rend(); ++Call)
    Word = Graph.calleeWord(Graph.Calls[*Call], Word);
  return Word;
}

// The copy that knows most of a path.
Function *Cloner::version(unsigned Function, const Path &Calls) const {
  const auto &Known = Versions[Function];
  for (Path Most = Calls; !Most.empty(); Most.pop_back())
    if (auto Found = Known.find(Most); Found != Known.end())
      return Found->second;
  return Graph.Functions[Function].Function;
}

void Cloner::rewrite(GlobalVariable &Records) {
  std::vector<ContextBody> Bodies = originalBodies(Graph);
  std::vector<Path> Paths(Bodies.size());
  for (unsigned Number = 0; Number < Graph.Functions.size(); ++Number)
    for (auto &[Calls, Made] : Versions[Number]) {
      llvm::Function *Old = Graph.Functions[Number].Function;
      ValueToValueMapTy Map;
      Made = CloneFunction(Old, Map);
      Made->setComdat(nullptr);
      Made->setLinkage(GlobalValue::InternalLinkage);
      Made->setVisibility(GlobalValue::DefaultVisibility);
      Made->setDSOLocal(true);
      Made->setName(Old->getName() + ".isotherm");
      Value *Word = ConstantInt::get(Type::getInt64Ty(Old->getContext()), wordOf(Calls));
      Bodies.push_back(Bodies[Number].copied(*Made, *Word, Map));
      Paths.push_back(Calls);
      ++Copies;
    }
  for (size_t I = 0; I < Bodies.size(); ++I) {
    placeRecords(Graph, Bodies[I], Records);
    for (auto [Instruction, Number] : Bodies[I].Calls) {
      Path Calls = {Number};
      Calls.insert(Calls.end(), Paths[I].begin(), Paths[I].end());
      Instruction->setCalledFunction(version(Graph.Calls[Number].Callee, Calls));
    }
  }
}

} // namespace

CloneOutcome cloneContexts(ContextGraph &Graph, GlobalVariable &Records, uint64_t MostInstructions,
                           const DenseMap<uint64_t, double> &Worth) {
  Cloner Cloner(Graph, Worth);
  Cloner.choose(MostInstructions);
  Cloner.rewrite(Records);
  CloneOutcome Outcome;
  Outcome.Told = Cloner.Told;
  for (uint64_t LeftOut : Cloner.LeftOutOf)
    Outcome.LeftOut += LeftOut;
  Outcome.Copies = Cloner.Copies;
  Outcome.LeftOutOf = std::move(Cloner.LeftOutOf);
  return Outcome;
}

} // namespace isotherm
