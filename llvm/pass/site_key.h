// The name of a site: the place of the call in the source.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/InstrTypes.h"

#include <cstdint>
#include <optional>
#include <string>

namespace isotherm {

// The place of a call.
struct SiteKey {
  // Source file, relative to the project's root if it is below it.
  std::string Path;
  // Symbol of the function that holds the call.
  std::string Function;
  // The same for display.
  std::string Shown;
  // Line in the file, and in the function: the latter stays when other functions change.
  unsigned Line = 0;
  unsigned LineInFunction = 0;
  unsigned Column = 0;
  // Calls before it in the function with the same line and column (macros, loops unrolled by hand).
  unsigned Ordinal = 0;
  // The calls that were inlined around it, outwards; empty before inlining.
  std::string Context;

  // The stable name: 64 bits of XXH3 over all fields except `Line` and `Shown`. Never 0 or 1, which have other
  // meanings in Isotherm's tables.
  uint64_t id() const;
};

// Names the sites of one module.
class SiteNamer {
public:
  // `Root` is the project's directory; empty for the directory of the compilation. `NamesSystem`: calls in
  // system directories are sites as well.
  explicit SiteNamer(llvm::StringRef Root, bool NamesSystem = false)
      : Root(Root), NamesSystem(NamesSystem) {}

  // The place of a call; none where its source is outside the project in a system directory and the callers are
  // not known: there the callers, not the place, distinguish the sites.
  std::optional<SiteKey> name(const llvm::CallBase &Call);

private:
  std::string Root;
  bool NamesSystem;
  llvm::StringMap<unsigned> Seen;
};

} // namespace isotherm
