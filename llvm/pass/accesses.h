// Which instructions access memory that is worth a count.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

namespace isotherm {

// Accesses that one instruction makes.
struct Access {
  llvm::Instruction *By;
  // A pointer, or a vector of them: an access for each.
  llvm::Value *Address;
  // Of a vector: which of its accesses are made; null where all are.
  llvm::Value *Mask = nullptr;

  unsigned count() const;
};

// Bytes that one instruction accesses, a number known when the program runs.
struct Range {
  llvm::Instruction *By;
  llvm::Value *Start;
  llvm::Value *Bytes;
};

// Accesses of a block that all happen if one does: no call that may not return lies between them.
using Stretch = llvm::SmallVector<Access, 16>;

// What a block accesses. The function's own variables are left out: they are on its stack, which is
// placed by nobody.
struct BlockAccesses {
  llvm::SmallVector<Stretch, 4> Stretches;
  llvm::SmallVector<Range, 4> Ranges;

  explicit BlockAccesses(llvm::BasicBlock &Block);

private:
  void add(llvm::Instruction &Instruction);
  void addAccess(llvm::Instruction &By, llvm::Value *Address, llvm::Value *Mask = nullptr);
  void addRange(llvm::Instruction &By, llvm::Value *Start, llvm::Value *Bytes);
};

} // namespace isotherm
