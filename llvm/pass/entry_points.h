// The functions that allocate, and what takes their place.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DerivedTypes.h"

namespace isotherm {

// One function that allocates.
struct EntryPoint {
  // Its symbol.
  llvm::StringRef Symbol;
  // What is called instead: the same arguments, without the trailing ones that only choose the
  // function, and the site behind them; before them where more may follow.
  llvm::StringRef Replacement;
  // Result and arguments: p a pointer, z a size, i an int, b a byte, t a truth value; a last dot for more of any type.
  llvm::StringRef Signature;
  // Arguments that are passed on.
  unsigned Kept;
  // The name of the function for people.
  llvm::StringRef Name;

  // Whether a function of this type can be the one that is meant; a program may use the name for
  // something else.
  bool fits(const llvm::FunctionType &Type) const;

  bool isVariadic() const { return Signature.ends_with("."); }
};

// All of them.
llvm::ArrayRef<EntryPoint> entryPoints();

// The one with this symbol, or null.
const EntryPoint *entryPoint(llvm::StringRef Symbol);

} // namespace isotherm
