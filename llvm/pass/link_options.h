// The options of the pass at the link, from the environment: the linker reads its options before it loads the
// pass, and would refuse those of the pass. isotherm-cc sets them.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace isotherm {

// How calling contexts are distinguished.
enum class ContextWay {
  None,
  // Functions get one more argument, the number of their context.
  Argument,
  // Functions get copies, one for each context.
  Clone,
};

struct LinkOptions {
  // ISOTHERM_CONTEXT: none (the default here), argument or clone.
  ContextWay Way = ContextWay::None;
  // ISOTHERM_DEPTH: calls in a context, the allocation's own included; from 1.
  unsigned Depth = 4;
  // ISOTHERM_GROWTH: how much copies may enlarge the program, in per cent of its instructions.
  unsigned GrowthPercent = 25;
  // The project's directory, as for the sites.
  std::string Root;
  // ISOTHERM_PROFILE: a list of contexts with their values, made by `isotherm sites --contexts`.
  std::string Profile;
  // ISOTHERM_REPORT: the file for the report.
  std::string Report;

  // Calls around an allocation in a context.
  unsigned levels() const { return Depth - 1; }
};

// The options, or a sentence that names the wrong one.
std::string readLinkOptions(LinkOptions &Options);

} // namespace isotherm
