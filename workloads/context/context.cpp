// The cost of one allocation, in nanoseconds, when many calling contexts reach it at the
// bottom of a deep stack: the case in which distinguishing sites is expensive.
//
// A tree of functions, kFan calls in each of kLevels levels, ends in one malloc: kFan^kLevels
// contexts that differ only in the return addresses above the innermost. `--unwind backtrace`
// adds a call of glibc's backtrace() to each allocation, as MemBrain's profiling run did.
#include <execinfo.h>

#include <cstdlib>
#include <string>

#include "../harness/options.hpp"
#include "../harness/result.hpp"

namespace {

constexpr uint64_t kFan = 4;
constexpr uint64_t kLevels = 4;
constexpr uint64_t kContexts = kFan * kFan * kFan * kFan;
constexpr int kMostCallers = 32;

struct Settings {
  std::string unwind = "none";
  uint64_t callers = 4;
  uint64_t depth = 12;
  uint64_t size = 64;
  uint64_t blocks = 256;
  uint64_t allocations = 20000000;
  uint64_t repeat = 1;
};

/// Arguments of the innermost function, passed down so that the compiler keeps every call.
struct Work {
  const Settings* settings;
  bool backtrace;
  unsigned char** slot;
  uint64_t path;
  uint64_t frames = 0;
};

[[gnu::noinline]] void allocate(Work* work) {
  if (work->backtrace) {
    void* frames[kMostCallers];
    // One more: the first frame is this function itself.
    work->frames += static_cast<uint64_t>(
        ::backtrace(frames, static_cast<int>(work->settings->callers) + 1));
  }
  std::free(*work->slot);
  *work->slot = static_cast<unsigned char*>(std::malloc(work->settings->size));
  if (*work->slot != nullptr) **work->slot = static_cast<unsigned char>(work->path);
}

/// Keeps a call from becoming a jump, which would drop the frame.
inline void keep_frame() { asm volatile("" ::: "memory"); }

template <uint64_t Level>
[[gnu::noinline]] void descend(Work* work) {
  const uint64_t turn = work->path >> (2 * Level) & (kFan - 1);
  const auto next = [work]() __attribute__((always_inline)) {
    if constexpr (Level + 1 == kLevels) {
      allocate(work);
    } else {
      descend<Level + 1>(work);
    }
    keep_frame();
  };
  // Four call sites, four return addresses. The asm keeps the compiler from merging them.
  switch (turn) {
    case 0: next(); asm volatile("# site 0"); break;
    case 1: next(); asm volatile("# site 1"); break;
    case 2: next(); asm volatile("# site 2"); break;
    default: next(); asm volatile("# site 3"); break;
  }
}

void allocate_all(const Settings& settings, unsigned char** slots, uint64_t* frames) {
  Work work{&settings, settings.unwind == "backtrace", nullptr, 0};
  for (uint64_t i = 0; i < settings.allocations; ++i) {
    work.slot = &slots[i % settings.blocks];
    work.path = i * 167 % kContexts;  // 167 is odd, so all contexts come in turn
    descend<0>(&work);
  }
  *frames += work.frames;
}

/// Stands `depth` frames deeper before the work begins.
[[gnu::noinline]] void deepen(uint64_t depth, const Settings& settings, unsigned char** slots,
                              uint64_t* frames) {
  if (depth == 0) {
    allocate_all(settings, slots, frames);
  } else {
    deepen(depth - 1, settings, slots, frames);
  }
  keep_frame();
}

void run(const Settings& settings) {
  auto** slots = static_cast<unsigned char**>(std::calloc(settings.blocks, sizeof(unsigned char*)));
  harness::Stopwatch kernel;
  uint64_t frames = 0;
  kernel.start();
  for (uint64_t i = 0; i < settings.repeat; ++i) deepen(settings.depth, settings, slots, &frames);
  kernel.stop();
  harness::Checksum checksum;
  for (uint64_t i = 0; i < settings.blocks; ++i) {
    if (slots[i] != nullptr) checksum.add(uint64_t{*slots[i]});
    std::free(slots[i]);
  }
  std::free(slots);
  const uint64_t allocations = settings.allocations * settings.repeat;
  std::printf("context: allocations %llu frames %llu checksum %016llx\n",
              static_cast<unsigned long long>(allocations),
              static_cast<unsigned long long>(frames), checksum.value());
  harness::print_measure("kernel_seconds", kernel.seconds());
  harness::print_measure("nanoseconds_per_allocation",
                         kernel.seconds() * 1e9 / static_cast<double>(allocations));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("context", "cost of one allocation among 256 calling contexts");
  options.word("--unwind", &settings.unwind, "none|backtrace", "call backtrace() at each allocation");
  options.count("--callers", &settings.callers, 1, kMostCallers - 1, "callers asked of backtrace()");
  options.count("--depth", &settings.depth, 0, 10000, "frames between main and the call tree");
  options.bytes("--size", &settings.size, 1, 1 << 30, "bytes of one allocation");
  options.count("--blocks", &settings.blocks, 1, 100000000, "blocks alive at a time");
  options.count("--allocations", &settings.allocations, 1, uint64_t{1} << 40,
                "allocations of one repetition");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the whole runs");
  options.parse(argc, argv);
  run(settings);
}
