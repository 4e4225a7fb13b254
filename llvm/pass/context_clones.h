// Contexts as copies of functions (Olson et al., MemBrain, NAS 2018, section IV-A): a function that
// several paths lead through is copied for each, so that every allocation has one path to it.
//
//     A  B  C          A   B   C
//      \ | /    -->    |   |   |
//        D             D   D'  D''
//
// Unbounded, that multiplies a program, so copies are made as far as the growth that is allowed
// lasts: first those that the profile says to matter, then short paths before long ones.
#pragma once

#include "context_graph.h"

namespace isotherm {

struct CloneOutcome {
  // Paths to allocations that are told apart, and those that are not for want of growth.
  uint64_t Told = 0;
  uint64_t LeftOut = 0;
  // Functions that were made.
  uint64_t Copies = 0;
  // Of each allocation of the graph, the paths that are not told apart.
  std::vector<uint64_t> LeftOutOf;
};

// Rewrites the program. `MostInstructions` is what copies may add; `Worth` says what it is worth to tell
// a context apart, by the name of the context.
CloneOutcome cloneContexts(ContextGraph &Graph, llvm::GlobalVariable &Records,
                           uint64_t MostInstructions,
                           const llvm::DenseMap<uint64_t, double> &Worth);

} // namespace isotherm
