// Chooses the function copies that distinguish most contexts within a growth limit.
#pragma once

#include "context_graph.h"

#include <set>
#include <vector>

namespace isotherm {

// Calls from the inside out.
using CallPath = std::vector<unsigned>;

class CloneChoice {
public:
  // `MostInstructions` is the limit of instructions that copies may add; `Worth` returns the value of a context
  // that is distinguished, by the name of the context.
  CloneChoice(const ContextGraph &Graph, uint64_t MostInstructions,
              const llvm::DenseMap<uint64_t, double> &Worth);

  // The paths that each function is copied for. A path ends before the certain calls, because nothing else
  // leads to the functions that they call.
  std::vector<std::set<CallPath>> Copies;
  // Contexts that are distinguished, and for each allocation of the graph those that are not for lack of
  // growth.
  uint64_t Told = 0;
  std::vector<uint64_t> LeftOutOf;

  // A path followed by its certain calls; if it is empty, the certain calls to the function.
  CallPath withCertain(unsigned Function, CallPath Calls) const;

private:
  // A path to an allocation that a copy could distinguish.
  struct Candidate {
    unsigned Allocation;
    CallPath Calls;
    double Worth;
    uint64_t Cost;
    // Whether a context may end here: not only on the way to longer ones.
    bool Whole;
  };

  void extend(unsigned Allocation, unsigned Function, unsigned Level, CallPath &Calls);
  double worth(const ContextAllocation &Allocation, const CallPath &Calls) const;
  void choose();
  std::vector<std::pair<unsigned, CallPath>> missing(const Candidate &Candidate) const;
  uint64_t cost(const Candidate &Candidate) const;
  void take(unsigned Function, CallPath Calls);
  bool has(unsigned Function, const CallPath &Calls) const;
  bool isCovered(unsigned Function, const CallPath &Calls) const;
  CallPath withoutCertain(CallPath Calls) const;
  unsigned outermost(unsigned Function, const CallPath &Calls) const;

  const ContextGraph &Graph;
  const llvm::DenseMap<uint64_t, double> &Worth;
  // Instructions that may still be added.
  uint64_t Left;
  std::vector<uint64_t> Sizes;
  // Functions of which only copies will be left.
  std::vector<bool> Replaced;
  std::vector<Candidate> Candidates;
};

} // namespace isotherm
