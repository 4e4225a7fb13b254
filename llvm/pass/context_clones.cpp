#include "context_clones.h"

#include "clone_choice.h"
#include "context_body.h"

#include "llvm/Transforms/Utils/Cloning.h"

#include <map>

using namespace llvm;

namespace isotherm {

namespace {

// The copies of one function, by the paths that lead to them.
using Versions = std::map<CallPath, Function *>;

Function *copyOf(Function &Old, ValueToValueMapTy &Map) {
  Function *Copy = CloneFunction(&Old, Map);
  Copy->setComdat(nullptr);
  Copy->setLinkage(GlobalValue::InternalLinkage);
  Copy->setVisibility(GlobalValue::DefaultVisibility);
  Copy->setDSOLocal(true);
  Copy->setName(Old.getName() + ".isotherm");
  return Copy;
}

uint64_t wordOf(const ContextGraph &Graph, const CallPath &Calls) {
  uint64_t Word = 0;
  for (auto Call = Calls.rbegin(); Call != Calls.rend(); ++Call)
    Word = Graph.calleeWord(Graph.Calls[*Call], Word);
  return Word;
}

// The copy that distinguishes most of a path.
Function *mostKnown(const ContextFunction &Function, const Versions &Known, CallPath Calls) {
  for (; !Calls.empty(); Calls.pop_back())
    if (auto Found = Known.find(Calls); Found != Known.end())
      return Found->second;
  return Function.Function;
}

} // namespace

CloneOutcome cloneContexts(ContextGraph &Graph, GlobalVariable &Records, uint64_t MostInstructions,
                           const DenseMap<uint64_t, double> &Worth) {
  CloneChoice Choice(Graph, MostInstructions, Worth);
  CloneOutcome Outcome;
  Outcome.Told = Choice.Told;
  Outcome.LeftOutOf = Choice.LeftOutOf;
  for (uint64_t LeftOut : Outcome.LeftOutOf)
    Outcome.LeftOut += LeftOut;

  std::vector<ContextBody> Bodies = originalBodies(Graph);
  std::vector<CallPath> Paths;
  std::vector<Versions> Made(Bodies.size());
  auto addPath = [&](ContextBody &Body, const CallPath &Calls) {
    Paths.push_back(Choice.withCertain(Body.Function, Calls));
    Body.Word = ConstantInt::get(Type::getInt64Ty(Body.Code->getContext()),
                                 wordOf(Graph, Paths.back()));
  };
  for (ContextBody &Body : Bodies)
    addPath(Body, {});
  for (unsigned Number = 0; Number < Graph.Functions.size(); ++Number)
    for (const CallPath &Calls : Choice.Copies[Number]) {
      ValueToValueMapTy Map;
      Function *Copy = copyOf(*Graph.Functions[Number].Function, Map);
      Bodies.push_back(Bodies[Number].copied(*Copy, *Bodies[Number].Word, Map));
      addPath(Bodies.back(), Calls);
      Made[Number][Calls] = Copy;
      ++Outcome.Copies;
    }
  for (size_t I = 0; I < Bodies.size(); ++I) {
    placeRecords(Graph, Bodies[I], Records);
    for (auto [Instruction, Number] : Bodies[I].Calls) {
      unsigned Callee = Graph.Calls[Number].Callee;
      CallPath Calls = {Number};
      Calls.insert(Calls.end(), Paths[I].begin(), Paths[I].end());
      Instruction->setCalledFunction(mostKnown(Graph.Functions[Callee], Made[Callee], Calls));
    }
  }
  return Outcome;
}

} // namespace isotherm
