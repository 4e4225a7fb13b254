// The functions that allocate, and their replacements.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DerivedTypes.h"

namespace isotherm {

// One function that allocates.
struct EntryPoint {
  // Its symbol.
  llvm::StringRef Symbol;
  // The replacement: the same arguments, without the trailing ones that only choose the function, followed by
  // the site; preceded by it for variadic functions.
  llvm::StringRef Replacement;
  // Result and arguments: p a pointer, z a size, i an int, b a byte, t a truth value; a last dot for more of any type.
  llvm::StringRef Signature;
  // Number of arguments that are passed on.
  unsigned Kept;
  // The name of the function for display.
  llvm::StringRef Name;

  // Whether a function of this type can be the library's; a program may use the name for another function.
  bool fits(const llvm::FunctionType &Type) const;

  bool isVariadic() const { return Signature.ends_with("."); }
};

// All entry points.
llvm::ArrayRef<EntryPoint> entryPoints();

// The entry point with this symbol, or null.
const EntryPoint *entryPoint(llvm::StringRef Symbol);

} // namespace isotherm
