// A program that gives up nearly all system calls by seccomp and continues to allocate: a forbidden
// call returns EPERM, and a library must work without it.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

void churn() {
  for (int i = 0; i < 300; ++i) {
    const std::vector<std::string> words(50, std::string(static_cast<size_t>(i), 's'));
    std::free(keep(std::malloc(static_cast<size_t>(i) * 10000 + 1)));
  }
}

/// Allows the calls for memory, threads and output; all others return EPERM.
bool lock_down() {
  const unsigned allowed[] = {SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
                              SYS_brk, SYS_futex, SYS_clone, SYS_clone3, SYS_exit, SYS_exit_group,
                              SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_set_robust_list, SYS_rseq, SYS_gettid,
                              SYS_getpid, SYS_tgkill, SYS_sched_yield};
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const unsigned number : allowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  const sock_fprog code{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code, 0, 0) == 0;
}

}  // namespace

int main() {
  auto* old = static_cast<unsigned char*>(std::malloc(16 << 20));
  fill_pattern(old, 16 << 20, 1);
  if (!lock_down()) return kSkip;
  for (int i = 0; i < 10; ++i) {
    churn();
    std::thread(churn).join();
    CHECK(has_pattern(old, 16 << 20, 1));
  }
  const char done[] = "working in a sandbox\n";
  CHECK(write(1, done, sizeof done - 1) == static_cast<ssize_t>(sizeof done - 1));
  _exit(12);
}
