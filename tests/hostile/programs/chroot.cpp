// A program that locks itself away: an empty root without /proc or /sys, another user, no
// privileges. Allocation, threads and fork continue to work.
#include <sys/stat.h>
#include <sys/wait.h>

#include <grp.h>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

void churn() {
  std::vector<std::string> words;
  for (int i = 0; i < 20000; ++i) words.push_back(std::string(static_cast<size_t>(i) % 300, 'c'));
  for (size_t size = 1; size < (16 << 20); size *= 2) std::free(keep(std::calloc(1, size)));
}

}  // namespace

int main() {
  if (geteuid() != 0) return kSkip;
  char folder[] = "/tmp/hostile-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  CHECK(chdir(folder) == 0 && rmdir(folder) == 0);
  if (chroot(".") != 0) return kSkip;
  churn();
  std::thread(churn).join();
  std::printf("in an empty root\n");
  std::fflush(stdout);
  CHECK(setgroups(0, nullptr) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
  churn();
  const pid_t pid = fork();
  if (pid == 0) {
    churn();
    std::thread(churn).join();
    _exit(3);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  std::printf("as nobody, child %d\n", WEXITSTATUS(status));
}
