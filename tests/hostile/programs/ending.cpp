// Ways to end, each with its exact status: exit, _exit, quick_exit, abort, a signal, an uncaught
// exception, exit while other threads allocate, the main thread leaving first.
#include <csignal>
#include <pthread.h>
#include <sys/resource.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "check.hpp"

namespace {

void start_noise() {
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      for (size_t turn = 0;; ++turn) std::free(keep(std::malloc(turn % 100000 + 1)));
    }).detach();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const std::string way = argc > 1 ? argv[1] : "";
  std::free(keep(std::malloc(100)));
  std::printf("ending by %s\n", way.c_str());
  std::fflush(stdout);
  if (way == "exit") std::exit(43);
  if (way == "return") return 44;
  if (way == "_exit") _exit(45);
  if (way == "quick_exit") {
    std::at_quick_exit([] { dprintf(1, "quick\n"); std::free(keep(std::malloc(1000))); });
    std::quick_exit(46);
  }
  if (way == "abort") std::abort();
  if (way == "kill") std::raise(SIGKILL);
  if (way == "term") std::raise(SIGTERM);
  if (way == "segv") write_near_zero(8);
  if (way == "bus") std::raise(SIGBUS);
  if (way == "throw") throw std::runtime_error("nobody catches this");
  if (way == "terminate") {
    std::set_terminate([] { _exit(47); });
    std::terminate();
  }
  if (way == "noise-exit") {
    start_noise();
    usleep(20000);
    std::exit(48);
  }
  if (way == "noise-return") {
    start_noise();
    return 49;
  }
  if (way == "thread-exit") std::thread([] { std::exit(50); }).join();
  if (way == "main-leaves") {
    std::thread([] {
      usleep(50000);
      for (int i = 0; i < 1000; ++i) std::free(keep(std::malloc(static_cast<size_t>(i) * 100)));
      std::printf("the other thread is last\n");
    }).detach();
    pthread_exit(nullptr);
  }
  std::fprintf(stderr, "ending: unknown way \"%s\"\n", way.c_str());
  return 2;
}
