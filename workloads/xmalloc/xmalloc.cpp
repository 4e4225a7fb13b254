// An allocation stress after the xmalloc test of Lever and Boreham ("malloc() Performance in a
// Multithreaded Linux Environment", USENIX 2000): some threads only allocate, others only free.
//
// Each producer fills batches of blocks and passes them through a bounded queue to a consumer,
// which frees them. Every block is freed by another thread than the one that made it.
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../harness/options.hpp"
#include "../harness/result.hpp"

namespace {

constexpr size_t kQueueLimit = 16;  // batches; bounds the memory between the two sides

struct Settings {
  uint64_t pairs = 1;
  uint64_t batch = 4096;
  uint64_t batches = 4000;
  uint64_t least = 8;
  uint64_t most = 512;
  uint64_t seed = 1;
  uint64_t repeat = 1;
};

struct Batch {
  std::vector<unsigned char*> blocks;
};

/// The queue between one producer and one consumer. Emptied batches travel back, so that the
/// queue itself allocates next to nothing.
class Channel {
 public:
  void send(std::unique_ptr<Batch> batch) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return full_.size() < kQueueLimit; });
    full_.push_back(std::move(batch));
    changed_.notify_all();
  }

  /// The next batch, or nothing once the producer has closed the channel.
  std::unique_ptr<Batch> receive() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !full_.empty() || closed_; });
    if (full_.empty()) return nullptr;
    std::unique_ptr<Batch> batch = std::move(full_.front());
    full_.pop_front();
    changed_.notify_all();
    return batch;
  }

  void give_back(std::unique_ptr<Batch> batch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    empty_.push_back(std::move(batch));
  }

  std::unique_ptr<Batch> take_empty(size_t capacity) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!empty_.empty()) {
        std::unique_ptr<Batch> batch = std::move(empty_.back());
        empty_.pop_back();
        return batch;
      }
    }
    auto batch = std::make_unique<Batch>();
    batch->blocks.resize(capacity);
    return batch;
  }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Batch>> full_;
  std::vector<std::unique_ptr<Batch>> empty_;
  bool closed_ = false;
};

/// A producer and its consumer.
struct Pair {
  Channel channel;
  uint64_t produced = 0;
  uint64_t consumed = 0;
  bool out_of_memory = false;
};

/// Allocates; the first byte of each block holds the low byte of its size.
void produce(Pair* pair, const Settings& settings, uint64_t seed) {
  harness::Random random(seed);
  for (uint64_t i = 0; i < settings.batches && !pair->out_of_memory; ++i) {
    std::unique_ptr<Batch> batch = pair->channel.take_empty(settings.batch);
    for (unsigned char*& block : batch->blocks) {
      const uint64_t size = settings.least + random.below(settings.most - settings.least + 1);
      block = static_cast<unsigned char*>(std::malloc(size));
      if (block == nullptr) {
        pair->out_of_memory = true;
        continue;
      }
      block[0] = static_cast<unsigned char>(size);
      pair->produced += block[0];
    }
    pair->channel.send(std::move(batch));
  }
  pair->channel.close();
}

/// Frees; adds up the content of the blocks.
void consume(Pair* pair) {
  while (std::unique_ptr<Batch> batch = pair->channel.receive()) {
    for (unsigned char*& block : batch->blocks) {
      if (block != nullptr) pair->consumed += block[0];
      std::free(block);
      block = nullptr;
    }
    pair->channel.give_back(std::move(batch));
  }
}

void run(const Settings& settings, const harness::Options& options) {
  harness::Stopwatch kernel;
  harness::Checksum checksum;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    std::vector<Pair> pairs(settings.pairs);
    std::vector<std::thread> threads;
    kernel.start();
    for (uint64_t i = 0; i < settings.pairs; ++i) {
      threads.emplace_back(produce, &pairs[i], std::cref(settings), settings.seed * 1000 + i);
      threads.emplace_back(consume, &pairs[i]);
    }
    for (std::thread& thread : threads) thread.join();
    kernel.stop();
    for (const Pair& pair : pairs) {
      if (pair.out_of_memory) options.refuse("malloc returned no memory");
      if (pair.produced != pair.consumed) options.refuse("a block lost its content");
      checksum.add(pair.consumed);
    }
  }
  const uint64_t operations = settings.pairs * settings.batches * settings.batch * settings.repeat;
  std::printf("xmalloc: operations %llu checksum %016llx\n",
              static_cast<unsigned long long>(operations), checksum.value());
  harness::print_measure("kernel_seconds", kernel.seconds());
  harness::print_measure("operations_per_second", static_cast<double>(operations) / kernel.seconds());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("xmalloc", "threads that only allocate, threads that only free");
  options.count("--pairs", &settings.pairs, 1, 512, "producers, each with a consumer");
  options.count("--batch", &settings.batch, 1, 1000000, "blocks of a batch");
  options.count("--batches", &settings.batches, 1, uint64_t{1} << 32, "batches of each producer");
  options.bytes("--least", &settings.least, 1, 1 << 30, "smallest block");
  options.bytes("--size", &settings.most, 1, 1 << 30, "largest block");
  options.count("--seed", &settings.seed, 0, 1u << 30, "seed of the random numbers");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the whole runs");
  options.parse(argc, argv);
  if (settings.least > settings.most) options.refuse("--least is larger than --size");
  run(settings, options);
}
