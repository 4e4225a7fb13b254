// A program that becomes itself again and again, from the main thread, from another thread, and
// with threads running.
#include <string>
#include <thread>

#include "check.hpp"

int main(int argc, char** argv) {
  const int left = argc > 1 ? std::atoi(argv[1]) : 30;
  void* blocks[100];
  for (size_t i = 0; i < 100; ++i) blocks[i] = std::malloc(i * 1000 + 1);
  fill_pattern(blocks[99], 99001, 1);
  CHECK(has_pattern(blocks[99], 99001, 1));
  if (left == 0) {
    std::printf("arrived, process %s\n", argc > 2 && std::stol(argv[2]) == getpid() ? "the same" : "another");
    return 17;
  }
  const std::string next = std::to_string(left - 1);
  const std::string self = std::to_string(argc > 2 ? std::stol(argv[2]) : getpid());
  const auto become = [&] {
    execl(argv[0], argv[0], next.c_str(), self.c_str(), nullptr);
    CHECK(false);
  };
  if (left % 3 == 0) std::thread(become).join();
  std::thread([] { for (;;) std::free(keep(std::malloc(4000))); }).detach();
  if (left % 3 == 1) usleep(2000);
  become();
}
