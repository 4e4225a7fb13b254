// Calls in the source: the frames of calling contexts.
#pragma once

#include "source_place.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

#include <cstdint>
#include <string>
#include <vector>

namespace isotherm {

// A call in the source.
struct CallFrame {
  SourcePlace Place;
  // 64 bits of XXH3 over all fields except the line in the file.
  uint64_t Hash;
};

// Frames by number, from the inside out.
using FrameList = llvm::SmallVector<unsigned, 4>;

// The frames of one program, each once.
class CallFrames {
public:
  explicit CallFrames(llvm::StringRef Root) : Root(Root) {}

  // The source calls behind one call instruction: its own, and those that were inlined around it. Frames in
  // headers of the system carry no information and are left out, unless there is no other. Never empty.
  FrameList ofCall(const llvm::Instruction &Call);

  // The calls that were inlined around an allocation, without its own; may be empty.
  FrameList around(const llvm::Instruction &Allocation);

  const std::vector<CallFrame> &all() const { return Frames; }

private:
  unsigned add(SourcePlace Place);
  void appendInlined(FrameList &List, const llvm::DILocation *Location);

  std::string Root;
  std::vector<CallFrame> Frames;
  llvm::DenseMap<uint64_t, unsigned> Known;
};

} // namespace isotherm
