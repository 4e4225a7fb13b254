// A program with its own handlers of SIGWINCH, the signal of the emulation by time: set by sigaction and by signal, read back,
// replaced, and called for signals that the program sends itself while it allocates.
#include <atomic>
#include <csignal>

#include "check.hpp"

namespace {

std::atomic<int> with_information{0};
std::atomic<int> without{0};

void count_information(int signal, siginfo_t* information, void* context) {
  CHECK(signal == SIGWINCH && information->si_pid == getpid() && context != nullptr);
  ++with_information;
}

void count(int signal) {
  CHECK(signal == SIGWINCH);
  ++without;
}

/// Sends the signal until it has been counted often; at most one is pending, so one may be lost beside another.
void send(std::atomic<int>& counter) {
  for (int sent = 0; counter < 50; ++sent) {
    CHECK(sent < 1000);
    auto* block = static_cast<unsigned char*>(std::malloc(100000));
    for (int i = 0; i < 100000; i += 64) block[i] = 1;
    std::free(keep(block));
    CHECK(kill(getpid(), SIGWINCH) == 0);
  }
}

}  // namespace

int main() {
  struct sigaction action {}, before {};
  CHECK(kill(getpid(), SIGWINCH) == 0);
  action.sa_sigaction = count_information;
  action.sa_flags = SA_SIGINFO;
  sigaddset(&action.sa_mask, SIGUSR2);
  CHECK(sigaction(SIGWINCH, &action, &before) == 0 && before.sa_handler == SIG_DFL);
  CHECK(sigaction(SIGWINCH, nullptr, &before) == 0 && before.sa_sigaction == count_information);
  CHECK((before.sa_flags & SA_SIGINFO) != 0 && sigismember(&before.sa_mask, SIGUSR2) == 1);
  send(with_information);
  CHECK(signal(SIGWINCH, count) != SIG_ERR);
  send(without);
  CHECK(signal(SIGWINCH, SIG_IGN) == count);
  const int counted = without;
  CHECK(kill(getpid(), SIGWINCH) == 0 && without == counted);
  CHECK(signal(SIGWINCH, SIG_DFL) == SIG_IGN);
  CHECK(kill(getpid(), SIGWINCH) == 0 && without == counted);
  std::printf("handlers were called\n");
}
