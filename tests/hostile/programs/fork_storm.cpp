// Forks by the hundred: alone, while other threads allocate, and from within children. Every child
// checks what it inherited, allocates, frees the parent's blocks and exits with a status of its own.
#include <sys/wait.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kShared = 2 << 20;

[[noreturn]] void child(int number, const unsigned char* inherited, std::vector<void*>* blocks) {
  CHECK(has_pattern(inherited, kShared, 1));
  for (void* block : *blocks) std::free(block);
  for (size_t size = 1; size < (4 << 20); size = size * 3 + 1) {
    void* fresh = keep(std::malloc(size));
    CHECK(fresh != nullptr);
    fill_pattern(fresh, size, static_cast<unsigned>(number));
    CHECK(has_pattern(fresh, size, static_cast<unsigned>(number)));
    std::free(fresh);
  }
  if (number % 8 == 0) {  // a grandchild
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      std::vector<std::string> words(1000, std::string(100, 'x'));
      _exit(words.back().size() == 100 ? 5 : 6);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);
  }
  if (number % 4 == 1) {  // a thread in the child
    std::thread([] { std::free(keep(std::malloc(100000))); }).join();
  }
  _exit(number % 100);
}

void storm(int forks) {
  auto* inherited = static_cast<unsigned char*>(std::malloc(kShared));
  fill_pattern(inherited, kShared, 1);
  int good = 0;
  for (int i = 0; i < forks; ++i) {
    std::vector<void*> blocks;
    for (size_t size = 8; size < 200000; size *= 2) blocks.push_back(std::malloc(size));
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(i, inherited, &blocks);
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    good += WIFEXITED(status) && WEXITSTATUS(status) == i % 100;
    for (void* block : blocks) std::free(block);
  }
  CHECK(has_pattern(inherited, kShared, 1));
  std::free(inherited);
  std::printf("%d of %d children as expected\n", good, forks);
}

}  // namespace

int main(int argc, char** argv) {
  const bool with_threads = argc > 1 && std::string(argv[1]) == "threads";
  std::atomic<bool> stop{false};
  std::vector<std::thread> noise;
  for (int i = 0; with_threads && i < 3; ++i) {
    noise.emplace_back([&stop, i] {
      for (size_t turn = 0; !stop; ++turn) {
        const size_t size = (turn * 7919 + static_cast<size_t>(i)) % 50000 + 1;
        std::free(std::realloc(keep(std::malloc(size)), size * 2));
      }
    });
  }
  storm(with_threads ? 60 : 150);
  stop = true;
  for (std::thread& thread : noise) thread.join();
}
