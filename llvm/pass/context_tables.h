// Writes the table of contexts into the module; see ../sites/isotherm_contexts.h.
#pragma once

#include "context_graph.h"

namespace isotherm {

// The records of all contexts, zero until each is used.
llvm::GlobalVariable &makeContextRecords(llvm::Module &Module, const ContextGraph &Graph);

// The table that describes the records.
void writeContextTable(llvm::Module &Module, const ContextGraph &Graph,
                       llvm::GlobalVariable &Records);

} // namespace isotherm
