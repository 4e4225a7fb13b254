// The calls that lead to allocations, and the numbers of the paths.
//
//     number of a path = first number of its innermost call + number of the rest in the caller
//
// See ../sites/isotherm_contexts.h. Level j of a function counts paths of j calls. A function gets all its
// numbers in one word, `FieldBits` for each level, the first lowest:
//
//     word for the callee = (own word << calls * FieldBits) + the call's word
//
// so a call costs a shift and an addition, whatever the depth. A level with too many paths for its field spoils
// the fields above it, which count even more paths, and none below.
#pragma once

#include "call_frames.h"
#include "indirect_calls.h"
#include "link_options.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"

#include <string>
#include <vector>

namespace isotherm {

// A call, once per function: copies that the optimiser made count as one.
struct ContextCall {
  unsigned Caller; // a function's number
  unsigned Callee;
  FrameList Frames;
  std::vector<llvm::CallBase *> Instructions;
  // For each level of the callee, from level 1.
  llvm::SmallVector<uint64_t, 8> FirstNumbers;
};

// A function that leads to allocations.
struct ContextFunction {
  llvm::Function *Function;
  // Its symbol; the function may be gone in the end.
  std::string Name;
  // Number of levels that its allocations need.
  unsigned Levels = 0;
  // Whether calls through pointers were turned into calls by name where possible.
  bool Guessed = false;
  // Why its callers cannot be distinguished; empty where they can.
  std::string Refused;
  // Why some of its callers are not known; empty where all are.
  std::string Unknown;
  // Calls that lead here.
  llvm::SmallVector<unsigned, 8> Incoming;
  // Paths of each level, from level 0, the unknown one included.
  llvm::SmallVector<uint64_t, 8> Paths;
  // The same without the impossible paths.
  llvm::SmallVector<uint64_t, 8> Possible;

  // Whether a context may end here because the callers of the function are unknown.
  bool mayBeginContexts() const { return Incoming.empty() || !Unknown.empty(); }
  // Whether exactly one call leads here.
  bool hasOneCaller() const { return Incoming.size() == 1 && Unknown.empty(); }
};

// The uses of one site in one function, by the calls that were inlined around them.
struct ContextAllocation {
  llvm::GlobalVariable *Site;
  unsigned Function;
  FrameList Frames;
  std::vector<llvm::Use *> Uses;
  // Levels of the function's number that distinguish it; at most the levels that the function needs.
  unsigned Level = 0;
  uint64_t FirstRecord = 0;
  uint64_t Records = 0;

  // Whether it has contexts to distinguish; otherwise the site's own record serves.
  bool hasContexts() const { return Records > 1 || !Frames.empty(); }
};

// Whether a function holds the addresses of its own labels: copies would jump into the original.
bool hasComputedGoto(const llvm::Function &Function);

class ContextGraph {
public:
  ContextGraph(llvm::Module &Module, const LinkOptions &Options);

  std::vector<ContextFunction> Functions;
  std::vector<ContextCall> Calls;
  std::vector<ContextAllocation> Allocations;
  CallFrames Frames;

  unsigned levels() const { return Levels; }
  unsigned fieldBits() const { return FieldBits; }
  // Records of all contexts.
  uint64_t records() const { return Records; }

  // What a call adds to the word of its callee.
  uint64_t word(const ContextCall &Call) const;
  // Whether the number of a level fits into its field.
  bool fits(const ContextFunction &Function, unsigned Level) const;
  // The word of a callee, for a caller whose word is known.
  uint64_t calleeWord(const ContextCall &Call, uint64_t CallerWord) const;
  // The number that a word holds for an allocation.
  uint64_t number(const ContextAllocation &Allocation, uint64_t Word) const;

private:
  void findAllocations(llvm::Module &Module);
  void findCallers();
  void addCaller(unsigned Callee, llvm::CallBase &Call);
  unsigned add(llvm::Function &Function);
  void ask(unsigned Function, unsigned Levels);
  void count();
  void giveRecords();

  IndirectCalls Indirect;
  ContextWay Way;
  unsigned Levels;
  unsigned FieldBits;
  uint64_t Records = 0;
  llvm::DenseMap<llvm::Function *, unsigned> Numbers;
  std::vector<unsigned> Asked;
  llvm::StringMap<unsigned> CallsByName;
  llvm::SmallPtrSet<llvm::CallBase *, 32> Known;
};

} // namespace isotherm
