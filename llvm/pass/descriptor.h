// Writes the record of a site into the module; see ../sites/isotherm_site.h.
#pragma once

#include "site_key.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

namespace isotherm {

class Descriptors {
public:
  explicit Descriptors(llvm::Module &Module);

  // The record of a site that calls `Callee`, which may be `malloc` itself. Objects that hold the same inline
  // function share it: the linker keeps one of each name.
  llvm::GlobalVariable *make(const SiteKey &Key, llvm::StringRef Callee, bool IsMalloc);

  // A text that ends in NUL; equal texts are shared.
  llvm::Constant *text(llvm::StringRef Text);

  // The bytes from one place to another, as a word: a relocation that the linker resolves.
  static llvm::Constant *distance(llvm::Constant *From, llvm::Constant *To);

private:
  llvm::Constant *mallocAtFirst();
  llvm::Constant *distance(llvm::GlobalVariable *Record, unsigned Field, llvm::Constant *To);

  llvm::Module &Module;
  llvm::StructType *Type;
  llvm::Constant *Version = nullptr;
  llvm::StringMap<llvm::Constant *> Texts;
};

// The pointer in a record to the function that serves `malloc`; null if the record has none.
llvm::Constant *mallocPointer(llvm::GlobalVariable &Record);

} // namespace isotherm
