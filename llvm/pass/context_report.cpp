#include "context_report.h"

#include "../sites/isotherm_site.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace isotherm {

namespace {

std::string nameOf(const ContextFunction &Function) { return demangle(Function.Name); }

// The functions where paths to an allocation end before they have all their calls, and the reasons.
void collectEnds(const ContextGraph &Graph, unsigned Number, unsigned Level,
                 SetVector<unsigned> &Ends, DenseSet<std::pair<unsigned, unsigned>> &Seen) {
  if (Level == 0 || !Seen.insert({Number, Level}).second)
    return;
  const ContextFunction &Function = Graph.Functions[Number];
  if (Function.mayBeginContexts())
    Ends.insert(Number);
  for (unsigned Call : Function.Incoming) {
    unsigned Length = Graph.Calls[Call].Frames.size();
    collectEnds(Graph, Graph.Calls[Call].Caller, Length >= Level ? 0 : Level - Length, Ends, Seen);
  }
}

StringRef reason(const ContextFunction &Function) {
  if (!Function.Refused.empty())
    return Function.Refused;
  return Function.Unknown.empty() ? StringRef("nothing calls it") : StringRef(Function.Unknown);
}

uint64_t contextsOf(const ContextGraph &Graph, const ContextAllocation &Allocation,
                    unsigned Level) {
  return Graph.Functions[Allocation.Function].Possible[Level];
}

void writeAllocation(raw_ostream &Out, const ContextGraph &Graph, unsigned Number,
                     const CloneOutcome *Clones) {
  const ContextAllocation &Allocation = Graph.Allocations[Number];
  auto *Record = cast<ConstantStruct>(Allocation.Site->getInitializer());
  unsigned Wanted = Graph.levels() - Allocation.Frames.size();
  Out << "site " << Allocation.Site->getName().drop_front(strlen("isotherm_site.")) << " in "
      << nameOf(Graph.Functions[Allocation.Function]) << ", line "
      << cast<ConstantInt>(Record->getOperand(7))->getZExtValue() << ": "
      << contextsOf(Graph, Allocation, Allocation.Level) << " contexts\n";
  if (Allocation.Level < Wanted)
    Out << "    distinguished by " << Wanted - Allocation.Level << " calls fewer: with all there are "
        << contextsOf(Graph, Allocation, Wanted) << " contexts, too many for the program\n";
  if (Clones && Clones->LeftOutOf[Number] > 0)
    Out << "    " << Clones->LeftOutOf[Number] << " of them not distinguished: the growth is used up\n";
  SetVector<unsigned> Ends;
  DenseSet<std::pair<unsigned, unsigned>> Seen;
  collectEnds(Graph, Allocation.Function, Allocation.Level, Ends, Seen);
  for (unsigned End : Ends)
    Out << "    stops at " << nameOf(Graph.Functions[End]) << ": "
        << reason(Graph.Functions[End]) << '\n';
}

} // namespace

std::string writeContextReport(const ContextGraph &Graph, const LinkOptions &Options,
                               const ContextGrowth &Growth, const CloneOutcome *Clones) {
  std::error_code Error;
  raw_fd_ostream Out(Options.Report, Error, sys::fs::OF_Text);
  if (Error)
    return "the report " + Options.Report + " cannot be written: " + Error.message();
  uint64_t Contexts = 0;
  for (const ContextAllocation &Allocation : Graph.Allocations)
    Contexts += contextsOf(Graph, Allocation, Allocation.Level);
  Out << "contexts of " << Options.Depth << " calls, as "
      << (Clones ? "copies of functions" : "an argument") << '\n'
      << "allocations " << Graph.Allocations.size() << '\n'
      << "contexts " << Contexts - (Clones ? Clones->LeftOut : 0) << '\n';
  if (Clones)
    Out << "contexts left out " << Clones->LeftOut << "\ncopies " << Clones->Copies << '\n';
  Out << "instructions before " << Growth.InstructionsBefore << "\ninstructions after "
      << Growth.InstructionsAfter << "\ngrowth "
      << format("%.1f%%\n", Growth.InstructionsBefore == 0
                                ? 0.0
                                : 100.0 * Growth.InstructionsAfter / Growth.InstructionsBefore - 100);
  for (unsigned Number = 0; Number < Graph.Allocations.size(); ++Number)
    writeAllocation(Out, Graph, Number, Clones);
  Out.close();
  if (Out.has_error()) {
    std::string Problem = "the report " + Options.Report + " cannot be written: " + Out.error().message();
    Out.clear_error();
    return Problem;
  }
  return "";
}

} // namespace isotherm
