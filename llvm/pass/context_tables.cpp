#include "context_tables.h"

#include "../sites/isotherm_contexts.h"
#include "descriptor.h"

#include "llvm/IR/Constants.h"

#include <map>

using namespace llvm;

namespace isotherm {

namespace {

// The table as words. Words that are distances are written once the place of the table is known.
class TableWriter {
public:
  TableWriter(Module &Module, const ContextGraph &Graph, GlobalVariable &Records)
      : Module(Module), Graph(Graph), Records(Records), Texts(Module),
        Word(Type::getInt32Ty(Module.getContext())) {}

  void write();

private:
  void number(uint64_t Value) { Words.push_back(ConstantInt::get(Word, Value)); }
  void place(Constant *Of) {
    Places.push_back({Words.size(), Of});
    number(0);
  }
  unsigned list(const FrameList &Frames);
  void lists();
  void header();
  void frames();
  void functions();
  void calls();
  void allocations();

  Module &Module;
  const ContextGraph &Graph;
  GlobalVariable &Records;
  Descriptors Texts;
  IntegerType *Word;
  std::vector<Constant *> Words;
  std::vector<std::pair<size_t, Constant *>> Places;
  std::vector<unsigned> Listed;
  std::map<std::vector<unsigned>, unsigned> Lists;
};

// Start of a list of frames in the list of all.
unsigned TableWriter::list(const FrameList &Frames) {
  auto [Entry, IsNew] =
      Lists.try_emplace(std::vector<unsigned>(Frames.begin(), Frames.end()), Listed.size());
  if (IsNew)
    Listed.insert(Listed.end(), Frames.begin(), Frames.end());
  return Entry->second;
}

void TableWriter::lists() {
  for (const ContextCall &Call : Graph.Calls)
    list(Call.Frames);
  for (const ContextAllocation &Allocation : Graph.Allocations)
    list(Allocation.Frames);
}

void TableWriter::header() {
  number(ISOTHERM_CONTEXTS_VERSION);
  number(Graph.levels());
  number(Graph.Frames.all().size());
  number(Listed.size());
  number(Graph.Functions.size());
  number(Graph.Calls.size());
  number(Graph.Allocations.size());
  number(Graph.records());
  place(&Records);
  number(0);
}

void TableWriter::frames() {
  for (const CallFrame &Frame : Graph.Frames.all()) {
    number(Frame.Hash & UINT32_MAX);
    number(Frame.Hash >> 32);
    place(Texts.text(Frame.Place.Path));
    place(Texts.text(Frame.Place.Shown));
    number(Frame.Place.Line);
    number(Frame.Place.Column);
  }
  for (unsigned Frame : Listed)
    number(Frame);
}

// Calls are ordered by the functions that they call, so that each function has its own in a row.
void TableWriter::functions() {
  unsigned First = 0;
  for (const ContextFunction &Function : Graph.Functions) {
    number(First);
    number(Function.Incoming.size());
    number(Function.mayBeginContexts());
    First += Function.Incoming.size();
  }
}

void TableWriter::calls() {
  for (const ContextFunction &Function : Graph.Functions)
    for (unsigned Number : Function.Incoming) {
      const ContextCall &Call = Graph.Calls[Number];
      bool Ends = Graph.Functions[Call.Caller].Incoming.empty();
      number(Ends ? ISOTHERM_CONTEXTS_NONE : Call.Caller);
      number(list(Call.Frames));
      number(Call.Frames.size());
    }
  for (const ContextFunction &Function : Graph.Functions)
    for (unsigned Number : Function.Incoming)
      for (uint64_t First : Graph.Calls[Number].FirstNumbers)
        number(std::min<uint64_t>(First, UINT32_MAX));
}

void TableWriter::allocations() {
  for (const ContextAllocation &Allocation : Graph.Allocations) {
    bool Ends = Graph.Functions[Allocation.Function].Incoming.empty();
    number(Allocation.FirstRecord);
    number(Ends ? ISOTHERM_CONTEXTS_NONE : Allocation.Function);
    number(Allocation.Level);
    number(list(Allocation.Frames));
    number(Allocation.Frames.size());
    place(Allocation.Site);
  }
}

void TableWriter::write() {
  lists();
  header();
  frames();
  functions();
  calls();
  allocations();
  auto *Type = ArrayType::get(Word, Words.size());
  auto *Table = new GlobalVariable(Module, Type, /*isConstant=*/true, GlobalValue::ExternalLinkage,
                                   nullptr, ISOTHERM_CONTEXTS_SYMBOL);
  Table->setVisibility(GlobalValue::HiddenVisibility);
  Table->setDSOLocal(true);
  Table->setSection(ISOTHERM_CONTEXTS_SECTION);
  Table->setAlignment(Align(8));
  llvm::Type *Long = llvm::Type::getInt64Ty(Module.getContext());
  for (auto [Index, Of] : Places) {
    Constant *Indices[] = {ConstantInt::get(Long, 0), ConstantInt::get(Long, Index)};
    Words[Index] = Descriptors::distance(
        ConstantExpr::getInBoundsGetElementPtr(Type, Table, Indices), Of);
  }
  Table->setInitializer(ConstantArray::get(Type, Words));
}

} // namespace

GlobalVariable &makeContextRecords(Module &Module, const ContextGraph &Graph) {
  LLVMContext &Context = Module.getContext();
  auto *Record = ArrayType::get(Type::getInt64Ty(Context), sizeof(isotherm_site) / 8);
  auto *Type = ArrayType::get(Record, Graph.records());
  auto *Records = new GlobalVariable(Module, Type, /*isConstant=*/false,
                                     GlobalValue::InternalLinkage, ConstantAggregateZero::get(Type),
                                     "isotherm_context_records");
  Records->setAlignment(Align(sizeof(isotherm_site)));
  return *Records;
}

void writeContextTable(Module &Module, const ContextGraph &Graph, GlobalVariable &Records) {
  TableWriter(Module, Graph, Records).write();
}

} // namespace isotherm
