// The place of an instruction in the source, in words that stay the same in the next build.
#pragma once

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"

#include <string>

namespace isotherm {

struct SourcePlace {
  // Source file, below the project's root where it lies there.
  std::string Path;
  // The function, as the linker knows it.
  std::string Function;
  // The function, for people.
  std::string Shown;
  // Line in the file, and in the function: the latter stays when other functions change.
  unsigned Line = 0;
  unsigned LineInFunction = 0;
  unsigned Column = 0;
  // In a header of the system: no project's own source.
  bool System = false;
};

// `Root` is the project's directory; empty for the directory of the compilation.
SourcePlace placeOf(const llvm::DILocation &Location, llvm::StringRef Root);

// Whether a function was written in a header of the system, as far as its place is known.
bool isSystemFunction(const llvm::Function &Function);

} // namespace isotherm
