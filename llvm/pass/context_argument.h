// Contexts as an argument: a function that leads to allocations gets one more, the word of its context, and a
// caller that calls it by name passes a word made of its own word and a constant.
#pragma once

#include "context_graph.h"

namespace isotherm {

// Rewrites the program. A function that is also called through pointers or from elsewhere stays as it is
// beside its copy with the argument, and calls with the unknown context.
void passContexts(ContextGraph &Graph, llvm::GlobalVariable &Records);

} // namespace isotherm
