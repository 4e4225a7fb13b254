// Finds the instructions whose memory accesses the profile build counts.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

namespace isotherm {

// Accesses that one instruction makes.
struct Access {
  llvm::Instruction *By;
  // A pointer, or a vector of pointers: one access for each.
  llvm::Value *Address;
  // For a vector: the mask of accesses that are made; null where all are.
  llvm::Value *Mask = nullptr;

  unsigned count() const;
};

// Bytes that one instruction accesses, a number that is known at run time only.
struct Range {
  llvm::Instruction *By;
  llvm::Value *Start;
  llvm::Value *Bytes;
};

// Accesses of a block that all happen if one does: no call that may not return is between them.
using Stretch = llvm::SmallVector<Access, 16>;

// The accesses of a block. The function's own variables are left out: they are on its stack, which no plan
// places.
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
