#include "call_frames.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace isotherm {

unsigned CallFrames::add(SourcePlace Place) {
  std::string Text = Place.Path;
  for (const std::string &Part :
       {Place.Function, std::to_string(Place.LineInFunction), std::to_string(Place.Column)}) {
    Text.push_back('\0');
    Text += Part;
  }
  // The two values that a map reserves are at the end of the numbers.
  uint64_t Hash = xxh3_64bits(Text) & ~uint64_t(2);
  auto [Entry, IsNew] = Known.try_emplace(Hash, Frames.size());
  if (IsNew)
    Frames.push_back({std::move(Place), Hash});
  return Entry->second;
}

void CallFrames::appendInlined(FrameList &List, const DILocation *Location) {
  for (; Location; Location = Location->getInlinedAt()) {
    SourcePlace Place = placeOf(*Location, Root);
    if (!Place.System)
      List.push_back(add(std::move(Place)));
  }
}

FrameList CallFrames::ofCall(const Instruction &Call) {
  FrameList List;
  const DILocation *Location = Call.getDebugLoc();
  appendInlined(List, Location);
  if (!List.empty())
    return List;
  if (Location) {
    List.push_back(add(placeOf(*Location, Root)));
    return List;
  }
  SourcePlace Nameless;
  Nameless.Path = Call.getModule()->getSourceFileName();
  Nameless.Function = Call.getFunction()->getName();
  Nameless.Shown = demangle(Nameless.Function);
  List.push_back(add(std::move(Nameless)));
  return List;
}

FrameList CallFrames::around(const Instruction &Allocation) {
  FrameList List;
  if (const DILocation *Location = Allocation.getDebugLoc())
    appendInlined(List, Location->getInlinedAt());
  return List;
}

} // namespace isotherm
