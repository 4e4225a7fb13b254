// Contexts as an argument: a function that allocations can be reached from gets one more, the word
// of its context, and who calls it by name passes a word made of the own one and a constant.
#pragma once

#include "context_graph.h"

namespace isotherm {

// Rewrites the program. A function that is also called through pointers or from elsewhere stays as it is
// beside its copy with the argument, and calls with the unknown context.
void passContexts(ContextGraph &Graph, llvm::GlobalVariable &Records);

} // namespace isotherm
