// The state of a program at its start: no child to wait for, no signal blocked or handled, no pending
// one, default file mode, one thread (unshare of what threads share is refused otherwise), locale
// and environment untouched.
#include <csignal>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.hpp"

int main() {
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  std::printf("children: errno %d\n", errno);
  sigset_t mask;
  sigset_t pending;
  CHECK(sigprocmask(SIG_BLOCK, nullptr, &mask) == 0 && sigpending(&pending) == 0);
  int blocked = 0;
  int waiting = 0;
  int handled = 0;
  for (int number = 1; number < 65; ++number) {
    blocked += sigismember(&mask, number) == 1;
    waiting += sigismember(&pending, number) == 1;
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0) {
      handled += action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }
  }
  std::printf("signals: %d blocked, %d pending, %d handled\n", blocked, waiting, handled);
  stack_t alternate{};
  CHECK(sigaltstack(nullptr, &alternate) == 0);
  std::printf("alternate stack: %s\n", (alternate.ss_flags & SS_DISABLE) != 0 ? "none" : "set");
  std::printf("umask %o\n", umask(022) & 0777);
  std::printf("dumpable %d, no new privileges %d\n", prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  std::printf("unshare of signal handlers: %s\n", unshare(CLONE_SIGHAND | CLONE_VM) == 0 ? "granted" : std::strerror(errno));
  std::printf("errno at start is %d\n", errno == 0 || errno == EINVAL ? 0 : errno);
}
