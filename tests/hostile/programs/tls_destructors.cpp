// Thread-local destructors that allocate and free, in C++ and by pthread keys that set themselves
// again: the program uses the allocator after its per-thread state may be released.
#include <pthread.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

std::atomic<int> cxx_destroyed{0};
std::atomic<int> key_destroyed{0};
pthread_key_t keys[8];

struct Local {
  std::map<int, std::string> table;
  ~Local() {
    std::vector<std::string> last(50, std::string(200, 'z'));
    for (int i = 0; i < 50; ++i) table[1000 + i] = last[static_cast<size_t>(i)];
    std::free(keep(std::malloc(3 << 20)));
    ++cxx_destroyed;
  }
};
thread_local Local local;
thread_local std::unique_ptr<Local> second;

/// Frees the value and sets another one, until the rounds that the system grants are used up.
void destroy_key(void* value) {
  const auto* block = static_cast<int*>(value);
  const int round = block[0];
  const int index = block[1];
  std::free(value);
  ++key_destroyed;
  if (round < 2) {
    auto* next = static_cast<int*>(std::malloc(4096 + static_cast<size_t>(round) * 100000));
    next[0] = round + 1;
    next[1] = index;
    pthread_setspecific(keys[index], next);
  }
}

void work(int number) {
  for (int i = 0; i < 100; ++i) local.table[i] = std::string(static_cast<size_t>(number) % 90, 'q');
  second = std::make_unique<Local>();
  for (int i = 0; i < 8; ++i) {
    auto* block = static_cast<int*>(std::malloc(64));
    block[0] = 0;
    block[1] = i;
    pthread_setspecific(keys[i], block);
  }
}

}  // namespace

int main() {
  for (pthread_key_t& key : keys) CHECK(pthread_key_create(&key, destroy_key) == 0);
  for (int i = 0; i < 100; ++i) {
    std::thread a(work, i);
    std::thread b(work, i + 1);
    a.join();
    b.join();
  }
  std::thread([] {
    work(7);
    pthread_exit(nullptr);
  }).join();
  work(5);  // the main thread's own locals go at exit
  std::printf("C++ %d, keys %d\n", cxx_destroyed.load(), key_destroyed.load());
}
