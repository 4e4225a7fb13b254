#include "contexts.h"

#include "context_argument.h"
#include "context_clones.h"
#include "context_graph.h"
#include "context_report.h"
#include "context_tables.h"
#include "link_options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"

using namespace llvm;

namespace isotherm {

namespace {

// Ends the link with an error message.
void refuse(Module &Module, const std::string &Sentence) {
  Module.getContext().emitError("isotherm: " + Sentence);
}

uint64_t instructions(const Module &Module) { return Module.getInstructionCount(); }

// Reads the list that `isotherm sites --contexts` prints: a name and a number on each line; the rest of a line,
// and lines that begin with #, are for people.
std::string readWorth(const std::string &File, DenseMap<uint64_t, double> &Worth) {
  auto Read = MemoryBuffer::getFile(File, /*IsText=*/true);
  if (!Read)
    return "the profile " + File + " cannot be read: " + Read.getError().message();
  SmallVector<StringRef, 0> Lines;
  (*Read)->getBuffer().split(Lines, '\n');
  for (size_t Number = 0; Number < Lines.size(); ++Number) {
    if (Lines[Number].trim().empty() || Lines[Number].starts_with("#"))
      continue;
    auto [Name, Rest] = getToken(Lines[Number]);
    uint64_t Id;
    double Value;
    if (Name.getAsInteger(16, Id) || Id >= UINT64_MAX - 1 || getToken(Rest).first.getAsDouble(Value))
      return File + ":" + std::to_string(Number + 1) +
             ": is no line of `isotherm sites --contexts`, which names a context and its worth";
    Worth[Id] += Value;
  }
  return "";
}

} // namespace

bool tellsContexts() {
  LinkOptions Options;
  return !readLinkOptions(Options).empty() || Options.Way != ContextWay::None;
}

PreservedAnalyses Contexts::run(Module &Module, ModuleAnalysisManager &Analyses) {
  LinkOptions Options;
  if (std::string Wrong = readLinkOptions(Options); !Wrong.empty()) {
    refuse(Module, Wrong);
    return PreservedAnalyses::all();
  }
  if (Options.Way == ContextWay::None || Options.levels() == 0)
    return PreservedAnalyses::all();
  DenseMap<uint64_t, double> Worth;
  if (!Options.Profile.empty())
    if (std::string Wrong = readWorth(Options.Profile, Worth); !Wrong.empty()) {
      refuse(Module, Wrong);
      return PreservedAnalyses::all();
    }
  ContextGrowth Growth;
  Growth.InstructionsBefore = instructions(Module);
  ContextGraph Graph(Module, Options);
  if (Graph.Allocations.empty())
    return PreservedAnalyses::all();
  GlobalVariable &Records = makeContextRecords(Module, Graph);
  writeContextTable(Module, Graph, Records);
  CloneOutcome Clones;
  if (Options.Way == ContextWay::Argument)
    passContexts(Graph, Records);
  else
    Clones = cloneContexts(Graph, Records,
                           Growth.InstructionsBefore * Options.GrowthPercent / 100, Worth);
  // Removes unreachable functions: the graph holds the names of its functions, and needs no more of them.
  GlobalDCEPass().run(Module, Analyses);
  Growth.InstructionsAfter = instructions(Module);
  if (!Options.Report.empty()) {
    const CloneOutcome *Made = Options.Way == ContextWay::Clone ? &Clones : nullptr;
    if (std::string Wrong = writeContextReport(Graph, Options, Growth, Made); !Wrong.empty())
      refuse(Module, Wrong);
  }
  return PreservedAnalyses::none();
}

} // namespace isotherm
