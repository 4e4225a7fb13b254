// The options of the pass, given as `-mllvm -isotherm-...` (isotherm-cc does so).
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace isotherm::options {

// -isotherm-root=DIRECTORY, or ISOTHERM_ROOT in the environment: the project's directory; paths of sources are
// relative to it.
llvm::StringRef root();

// -isotherm-wrapper=NAME,...: functions that allocate for their callers.
llvm::ArrayRef<std::string> wrappers();

// -isotherm-find-wrappers=false: only the named ones.
bool findWrappers();

} // namespace isotherm::options
