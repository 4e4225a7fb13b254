#include "site_key.h"

#include "source_place.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace isotherm {

namespace {

std::string contextOf(const DILocation &Location) {
  std::string Context;
  for (const DILocation *Outer = Location.getInlinedAt(); Outer; Outer = Outer->getInlinedAt()) {
    SourcePlace Place = placeOf(*Outer, "");
    Context += Place.Function;
    Context += ':' + std::to_string(Place.LineInFunction);
    Context += ':' + std::to_string(Place.Column) + ';';
  }
  return Context;
}

} // namespace

uint64_t SiteKey::id() const {
  std::string Text = Path;
  for (const std::string &Part :
       {Function, std::to_string(LineInFunction), std::to_string(Column), std::to_string(Ordinal), Context}) {
    Text.push_back('\0');
    Text += Part;
  }
  uint64_t Hash = xxh3_64bits(Text);
  return Hash > 1 ? Hash : Hash + 2;
}

std::optional<SiteKey> SiteNamer::name(const CallBase &Call) {
  const Function &Function = *Call.getFunction();
  SiteKey Key;
  Key.Path = Function.getParent()->getSourceFileName();
  Key.Function = Function.getName();
  Key.Shown = demangle(Key.Function);
  if (const DILocation *Location = Call.getDebugLoc()) {
    SourcePlace Place = placeOf(*Location, Root);
    if (Place.System && !NamesSystem)
      return std::nullopt;
    Key.Path = Place.Path;
    Key.Function = Place.Function;
    Key.Shown = Place.Shown;
    Key.Line = Place.Line;
    Key.LineInFunction = Place.LineInFunction;
    Key.Column = Place.Column;
    // At the link, the calls around the allocation are its context, not its name.
    if (NamesSystem)
      return Key;
    Key.Context = contextOf(*Location);
  }
  // The id without an ordinal stands for the place.
  Key.Ordinal = Seen[std::to_string(Key.id()) + Function.getName().str()]++;
  return Key;
}

} // namespace isotherm
