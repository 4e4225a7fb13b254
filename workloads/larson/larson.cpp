// An allocation stress after the description by Larson and Krishnan ("Memory Allocation for
// Long-Running Server Applications", ISMM 1998): a server whose threads come and go while its
// blocks live on.
//
// Each chain owns an array of blocks of random sizes. A thread replaces random blocks for a round,
// then hands the array over to a new thread and ends, so most blocks are freed by another thread
// than the one that made them. The work is fixed, not the time, so the result is deterministic.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../harness/options.hpp"
#include "../harness/result.hpp"

namespace {

struct Settings {
  uint64_t threads = 2;
  uint64_t blocks = 1000;
  uint64_t least = 8;
  uint64_t most = 1024;
  uint64_t rounds = 100;
  uint64_t replacements = 500000;
  uint64_t seed = 1;
  uint64_t repeat = 1;
};

struct Block {
  unsigned char* bytes = nullptr;
  uint64_t size = 0;
};

/// One array of blocks and the random sequence that goes with it from thread to thread.
struct Chain {
  explicit Chain(uint64_t seed, uint64_t blocks) : random(seed), slots(blocks) {}
  harness::Random random;
  std::vector<Block> slots;
  harness::Checksum checksum;
  bool torn = false;
  bool out_of_memory = false;
};

/// Checks both ends of the slot's block, frees it, and puts a new block there.
void replace(Chain* chain, const Settings& settings) {
  Block& slot = chain->slots[chain->random.below(chain->slots.size())];
  if (slot.bytes != nullptr) {
    const auto mark = static_cast<unsigned char>(slot.size);
    chain->torn |= slot.bytes[0] != mark || slot.bytes[slot.size - 1] != mark;
    std::free(slot.bytes);
  }
  slot.size = settings.least + chain->random.below(settings.most - settings.least + 1);
  slot.bytes = static_cast<unsigned char*>(std::malloc(slot.size));
  if (slot.bytes == nullptr) {
    chain->out_of_memory = true;
    return;
  }
  slot.bytes[0] = slot.bytes[slot.size - 1] = static_cast<unsigned char>(slot.size);
  chain->checksum.add(slot.size);
}

void run_round(Chain* chain, const Settings& settings) {
  for (uint64_t i = 0; i < settings.replacements && !chain->out_of_memory; ++i) {
    replace(chain, settings);
  }
}

/// Runs the rounds of one chain, each in a thread started by the thread before it.
void run_chain(Chain* chain, const Settings& settings, uint64_t rounds_left) {
  run_round(chain, settings);
  if (rounds_left > 1) {
    std::thread successor(run_chain, chain, std::cref(settings), rounds_left - 1);
    successor.join();
  }
}

void run(const Settings& settings, const harness::Options& options) {
  harness::Stopwatch kernel;
  harness::Checksum checksum;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    std::vector<Chain> chains;
    for (uint64_t i = 0; i < settings.threads; ++i) {
      chains.emplace_back(settings.seed * 1000 + i, settings.blocks);
    }
    kernel.start();
    std::vector<std::thread> threads;
    for (Chain& chain : chains) {
      threads.emplace_back(run_chain, &chain, std::cref(settings), settings.rounds);
    }
    for (std::thread& thread : threads) thread.join();
    kernel.stop();
    for (Chain& chain : chains) {
      if (chain.out_of_memory) options.refuse("malloc returned no memory");
      if (chain.torn) options.refuse("a block lost its content");
      for (const Block& slot : chain.slots) std::free(slot.bytes);
      checksum.add(uint64_t{chain.checksum.value()});
    }
  }
  const uint64_t operations =
      settings.threads * settings.rounds * settings.replacements * settings.repeat;
  std::printf("larson: operations %llu checksum %016llx\n",
              static_cast<unsigned long long>(operations), checksum.value());
  harness::print_measure("kernel_seconds", kernel.seconds());
  harness::print_measure("operations_per_second", static_cast<double>(operations) / kernel.seconds());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("larson", "random replacement of blocks that outlive their threads");
  options.count("--threads", &settings.threads, 1, 1024, "chains of threads at a time");
  options.count("--blocks", &settings.blocks, 1, 100000000, "blocks of each chain");
  options.bytes("--least", &settings.least, 1, 1 << 30, "smallest block");
  options.bytes("--size", &settings.most, 1, 1 << 30, "largest block");
  options.count("--rounds", &settings.rounds, 1, 10000, "threads of each chain, one after another");
  options.count("--replacements", &settings.replacements, 1, uint64_t{1} << 40,
                "blocks replaced by one thread");
  options.count("--seed", &settings.seed, 0, 1u << 30, "seed of the random numbers");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the whole runs");
  options.parse(argc, argv);
  if (settings.least > settings.most) options.refuse("--least is larger than --size");
  run(settings, options);
}
