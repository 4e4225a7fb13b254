// Functions of the program that allocate for their callers, named by an option.
//
// Such a function gets a twin with one more argument, the caller's site, with which it allocates;
// whoever calls it by name calls the twin. The function itself stays for those who call it through
// a pointer or from objects that were compiled without the option.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"

#include <string>

namespace isotherm {

class Wrappers {
public:
  explicit Wrappers(llvm::ArrayRef<std::string> Names);

  // Whether calls to the function are sites.
  bool isWrapper(const llvm::Function &Function) const;

  // The twin of a wrapper, declared if it is not here.
  llvm::FunctionCallee twin(llvm::Function &Wrapper) const;

  // Makes the twins of the wrappers that the module defines.
  void makeTwins(llvm::Module &Module) const;

  // The site that a twin got from its caller; null in any other function.
  static llvm::Argument *siteArgument(llvm::Function &Function);

private:
  llvm::StringSet<> Names;
};

} // namespace isotherm
