#include "link_options.h"

#include "../sites/isotherm_contexts.h"
#include "options.h"

#include "llvm/ADT/StringSwitch.h"

#include <cstdlib>
#include <optional>

using namespace llvm;

namespace isotherm {

namespace {

StringRef variable(const char *Name) {
  const char *Value = std::getenv(Name);
  return Value ? Value : "";
}

} // namespace

std::string readLinkOptions(LinkOptions &Options) {
  StringRef Way = variable("ISOTHERM_CONTEXT");
  std::optional<ContextWay> Known = StringSwitch<std::optional<ContextWay>>(Way)
                                        .Cases("", "none", ContextWay::None)
                                        .Case("argument", ContextWay::Argument)
                                        .Case("clone", ContextWay::Clone)
                                        .Default(std::nullopt);
  if (!Known)
    return "the way to tell contexts apart is \"" + Way.str() +
           "\"; there are argument, clone and none";
  Options.Way = *Known;
  StringRef Depth = variable("ISOTHERM_DEPTH");
  const unsigned Most = ISOTHERM_CONTEXT_LEVELS + 1;
  if (!Depth.empty() && (Depth.getAsInteger(10, Options.Depth) || Options.Depth < 1 ||
                         Options.Depth > Most))
    return "the depth of contexts is \"" + Depth.str() + "\"; it is a number from 1 to " +
           std::to_string(Most);
  StringRef Growth = variable("ISOTHERM_GROWTH");
  if (!Growth.empty() &&
      (!Growth.consume_back("%") || Growth.getAsInteger(10, Options.GrowthPercent)))
    return "the growth that is allowed must be a whole number of per cent, such as 25%";
  Options.Root = options::root();
  Options.Profile = variable("ISOTHERM_PROFILE");
  Options.Report = variable("ISOTHERM_REPORT");
  return "";
}

} // namespace isotherm
