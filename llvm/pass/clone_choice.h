// Which copies of functions tell most contexts apart within a growth.
#pragma once

#include "context_graph.h"

#include <set>
#include <vector>

namespace isotherm {

// Calls from the inside out.
using CallPath = std::vector<unsigned>;

class CloneChoice {
public:
  // `MostInstructions` is what copies may add; `Worth` says what it is worth to tell a context apart, by the
  // name of the context.
  CloneChoice(const ContextGraph &Graph, uint64_t MostInstructions,
              const llvm::DenseMap<uint64_t, double> &Worth);

  // The paths that each function is copied for. A path ends before the calls that are certain, because
  // nothing else leads to the functions that they call.
  std::vector<std::set<CallPath>> Copies;
  // Contexts that are told apart, and of each allocation of the graph those that are not for want of growth.
  uint64_t Told = 0;
  std::vector<uint64_t> LeftOutOf;

  // A path with the calls that are certain behind it; those that lead to the function where it is empty.
  CallPath withCertain(unsigned Function, CallPath Calls) const;

private:
  // A path to an allocation that could be told apart.
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
  // Functions of which nothing but copies will be left.
  std::vector<bool> Replaced;
  std::vector<Candidate> Candidates;
};

} // namespace isotherm
