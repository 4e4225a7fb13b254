// All signals are blocked in all threads, and one thread takes them by sigwaitinfo and sigwait, as servers do: those of the program's own
// timers, and what it sends to itself. Threads work on much memory meanwhile, blocked by attributes or by inheritance, and nothing
// may ever be pending for them that the program did not send.
#include <csignal>
#include <ctime>
#include <pthread.h>
#include <sys/signalfd.h>

#include <atomic>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kDataBytes = size_t{48} << 20;
constexpr int kTicks = 20;

std::atomic<int> notified{0};
std::atomic<bool> waiting{false};

sigset_t all_signals() {
  sigset_t all;
  CHECK(sigfillset(&all) == 0);
  return all;
}

double worked() {
  timespec time{};
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// No signal is pending, by any of the ways to find one.
void check_quiet() {
  const sigset_t all = all_signals();
  sigset_t pending;
  CHECK(sigpending(&pending) == 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) CHECK(sigismember(&pending, signal) <= 0);
  const timespec now{};
  CHECK(sigtimedwait(&all, nullptr, &now) == -1 && errno == EAGAIN);
}

/// Reads at random for so many seconds of its own processor time.
void read_at_random(double seconds, bool alone) {
  auto* data = static_cast<unsigned char*>(std::malloc(kDataBytes));
  CHECK(data != nullptr);
  fill_pattern(data, kDataBytes, 7);
  uint64_t state = 1;
  const double end = worked() + seconds;
  while (worked() < end) {
    for (int i = 0; i < 10000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const size_t place = (state >> 20) % kDataBytes;
      CHECK(data[place] == pattern_byte(place, 7));
    }
    if (alone) check_quiet();
  }
  std::free(data);
}

void* work_alone(void*) {
  read_at_random(0.15, true);
  return nullptr;
}

void* work_beside(void*) {
  while (!waiting) sched_yield();
  read_at_random(0.15, false);
  return nullptr;
}

void on_tick(sigval value) {
  void* block = std::malloc(100000);
  CHECK(block != nullptr && value.sival_int == 5);
  std::free(block);
  ++notified;
}

timer_t start_timer(sigevent& event) {
  timer_t timer{};
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  const itimerspec often{{0, 2000000}, {0, 2000000}};
  CHECK(timer_settime(timer, 0, &often, nullptr) == 0);
  return timer;
}

/// Takes signals until SIGINT: ticks of the timer, and one of each that the program sends.
void* wait_for_all(void*) {
  const sigset_t all = all_signals();
  int ticks = 0;
  int sent = 0;
  waiting = true;
  for (;;) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&all, &info);
    if (signal == -1 && errno == EINTR) continue;
    if (signal == SIGUSR1) {
      CHECK(info.si_code == SI_TIMER && info.si_value.sival_int == 9);
      ++ticks;
    } else if (signal == SIGRTMIN + 1) {
      CHECK(info.si_code == SI_QUEUE && info.si_value.sival_int == 77);
      ++sent;
    } else if (signal == SIGINT) {
      break;
    } else {
      CHECK(signal == SIGHUP);
      ++sent;
    }
  }
  CHECK(ticks >= kTicks && sent == 2);
  int signal = 0;
  do {
    CHECK(sigwait(&all, &signal) == 0 && (signal == SIGTERM || signal == SIGUSR1));
  } while (signal != SIGTERM);
  return nullptr;
}

pthread_t start_thread(void* (*function)(void*), const sigset_t* mask) {
  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  if (mask != nullptr) CHECK(pthread_attr_setsigmask_np(&attributes, mask) == 0);
  pthread_t thread{};
  CHECK(pthread_create(&thread, &attributes, function, nullptr) == 0);
  pthread_attr_destroy(&attributes);
  return thread;
}

/// A thread that is blocked by its attributes alone, one that inherits it, and a descriptor that all signals would be read from.
void nothing_comes_by_itself() {
  const sigset_t all = all_signals();
  std::vector<pthread_t> threads{start_thread(work_alone, &all)};
  CHECK(pthread_sigmask(SIG_SETMASK, &all, nullptr) == 0);
  threads.push_back(start_thread(work_alone, nullptr));
  const int descriptor = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(descriptor >= 0);
  read_at_random(0.15, true);
  signalfd_siginfo info{};
  CHECK(read(descriptor, &info, sizeof info) == -1 && errno == EAGAIN);
  close(descriptor);
  for (const pthread_t thread : threads) CHECK(pthread_join(thread, nullptr) == 0);
}

void own_timers_tick() {
  const sigset_t all = all_signals();
  const pthread_t waiter = start_thread(wait_for_all, nullptr);
  const pthread_t worker = start_thread(work_beside, &all);
  sigevent by_signal{};
  by_signal.sigev_notify = SIGEV_SIGNAL;
  by_signal.sigev_signo = SIGUSR1;
  by_signal.sigev_value.sival_int = 9;
  sigevent by_thread{};
  by_thread.sigev_notify = SIGEV_THREAD;
  by_thread.sigev_notify_function = on_tick;
  by_thread.sigev_value.sival_int = 5;
  const timer_t first = start_timer(by_signal);
  const timer_t second = start_timer(by_thread);
  CHECK(kill(getpid(), SIGHUP) == 0);
  sigval value{};
  value.sival_int = 77;
  CHECK(sigqueue(getpid(), SIGRTMIN + 1, value) == 0);
  CHECK(pthread_join(worker, nullptr) == 0);
  const timespec tick{0, 2000000};
  for (int i = 0; i < 3 * kTicks || notified < kTicks; ++i) nanosleep(&tick, nullptr);
  CHECK(timer_delete(first) == 0 && timer_delete(second) == 0);
  CHECK(kill(getpid(), SIGINT) == 0 && kill(getpid(), SIGTERM) == 0);
  CHECK(pthread_join(waiter, nullptr) == 0);
}

}  // namespace

int main() {
  nothing_comes_by_itself();
  own_timers_tick();
  std::puts("every signal was the program's own");
}
