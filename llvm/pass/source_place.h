// The place of an instruction in the source, as text that stays the same in the next build.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"

#include <string>

namespace isotherm {

struct SourcePlace {
  // Source file, relative to the project's root if it is below it.
  std::string Path;
  // Symbol of the function.
  std::string Function;
  // The function, for display.
  std::string Shown;
  // Line in the file, and in the function: the latter stays when other functions change.
  unsigned Line = 0;
  unsigned LineInFunction = 0;
  unsigned Column = 0;
  // Whether it is in a header of the system, not in a project's own source.
  bool System = false;
};

// `Root` is the project's directory; empty for the directory of the compilation.
SourcePlace placeOf(const llvm::DILocation &Location, llvm::StringRef Root);

// Whether a function was written in a header of the system, as far as its place is known.
bool isSystemFunction(const llvm::Function &Function);

} // namespace isotherm
