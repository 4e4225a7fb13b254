// A daemon: two forks, a new session, descriptors closed; the parent leaves at once and the
// grandchild continues to allocate and to report through the output that it kept.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

int main() {
  std::vector<std::string> words(10000, std::string(100, 'd'));
  std::printf("parent leaves\n");
  std::fflush(stdout);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid > 0) return 0;
  CHECK(setsid() >= 0);
  pid = fork();
  CHECK(pid >= 0);
  if (pid > 0) _exit(0);
  close(0);
  CHECK(chdir("/") == 0);
  usleep(200000);
  words.resize(100000, std::string(50, 'e'));
  std::thread([&words] { words.clear(); words.shrink_to_fit(); }).join();
  std::printf("daemon done\n");
  return 3;
}
