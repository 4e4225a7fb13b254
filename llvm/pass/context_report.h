// The report of the contexts that were distinguished and those that were not, as text for people.
#pragma once

#include "context_clones.h"
#include "context_graph.h"
#include "link_options.h"

namespace isotherm {

// For the whole program.
struct ContextGrowth {
  uint64_t InstructionsBefore = 0;
  uint64_t InstructionsAfter = 0;
};

// `Clones` is null where contexts are an argument. Returns a sentence if the file cannot be written, else an
// empty text.
std::string writeContextReport(const ContextGraph &Graph, const LinkOptions &Options,
                               const ContextGrowth &Growth, const CloneOutcome *Clones);

} // namespace isotherm
