// Contexts as copies of functions (Olson et al., MemBrain, NAS 2018, section IV-A): a function on several paths
// is copied for each, so that every allocation has one path to it.
//
//     A  B  C          A   B   C
//      \ | /    -->    |   |   |
//        D             D   D'  D''
//
// Without a bound, that multiplies a program, so copies are made only up to the growth limit: first those that
// the profile ranks highest, then short paths before long ones.
#pragma once

#include "context_graph.h"

namespace isotherm {

struct CloneOutcome {
  // Paths to allocations that are distinguished, and those that are not for lack of growth.
  uint64_t Told = 0;
  uint64_t LeftOut = 0;
  // Number of functions that were made.
  uint64_t Copies = 0;
  // For each allocation of the graph, the number of paths that are not distinguished.
  std::vector<uint64_t> LeftOutOf;
};

// Rewrites the program. `MostInstructions` is the limit of instructions that copies may add; `Worth` returns
// the value of a context that is distinguished, by the name of the context.
CloneOutcome cloneContexts(ContextGraph &Graph, llvm::GlobalVariable &Records,
                           uint64_t MostInstructions,
                           const llvm::DenseMap<uint64_t, double> &Worth);

} // namespace isotherm
