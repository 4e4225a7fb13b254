// Functions that allocate for their callers: named by an option, found, or of a system header.
//
// Such a function gets a twin with one more argument, the caller's site, with which it allocates; calls by name
// call the twin. The function itself stays for calls through a pointer or from objects that were compiled
// without the option. A caller in another file knows only the declaration: where that declares an allocation,
// the linker is requested to find the twin, and the function itself is called where there is none.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"

#include <string>

namespace isotherm {

class Wrappers {
public:
  // No function is a wrapper.
  Wrappers() = default;

  // The named functions and those that were found; a function that is only declared may be one.
  Wrappers(llvm::ArrayRef<std::string> Names, llvm::SmallPtrSet<const llvm::Function *, 8> Found);

  // Whether calls to the function are sites.
  bool isWrapper(const llvm::Function &Function) const;

  // Whether they are if the linker finds a twin.
  bool mayBeWrapper(const llvm::Function &Function) const;

  // The twin of a wrapper, declared if it is not here; null at run time where there is no twin because the
  // function only may be a wrapper.
  llvm::FunctionCallee twin(llvm::Function &Wrapper) const;

  // Makes the twins of the wrappers that the module defines.
  void makeTwins(llvm::Module &Module) const;

  // The caller's site in a twin; null in any other function.
  static llvm::Argument *siteArgument(llvm::Function &Function);

private:
  bool wantsTwin(const llvm::Function &Function) const;

  bool Guesses = false;
  llvm::StringSet<> Names;
  llvm::SmallPtrSet<const llvm::Function *, 8> Found;
};

} // namespace isotherm
