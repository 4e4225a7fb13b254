// Every way to start another program: vfork and exec, posix_spawn, system, popen, execve of a
// missing file, exec from a thread's child. Buffers on the heap go into argv and environment.
#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

extern char** environ;

namespace {

int wait_for(pid_t pid) {
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// `/bin/sh -c script` with every string on the heap.
std::vector<char*> shell(const char* script) {
  return {strdup("/bin/sh"), strdup("-c"), strdup(script), nullptr};
}

void free_arguments(std::vector<char*>* arguments) {
  for (char* argument : *arguments) std::free(argument);
}

int by_vfork(const char* script) {
  std::vector<char*> arguments = shell(script);
  const pid_t pid = vfork();
  if (pid == 0) {
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  const int status = wait_for(pid);
  free_arguments(&arguments);
  return status;
}

int by_posix_spawn(const char* script) {
  std::vector<char*> arguments = shell(script);
  pid_t pid = 0;
  CHECK(posix_spawn(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0);
  const int status = wait_for(pid);
  free_arguments(&arguments);
  return status;
}

std::string by_popen(const char* script) {
  FILE* stream = popen(script, "r");
  CHECK(stream != nullptr);
  char* line = nullptr;
  size_t capacity = 0;
  std::string all;
  while (getline(&line, &capacity, stream) > 0) all += line;
  std::free(line);
  CHECK(pclose(stream) == 0);
  return all;
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  for (int i = 0; i < 20; ++i) {
    std::printf("vfork %d\n", by_vfork("exit 3"));
    std::printf("posix_spawn %d\n", by_posix_spawn("exit 4"));
  }
  std::printf("killed %d\n", by_vfork("kill -9 $$"));
  std::printf("system %d\n", WEXITSTATUS(std::system("echo from system; exit 5")));
  std::printf("popen %s", by_popen("echo one; echo two").c_str());
  std::printf("missing program %d\n", by_posix_spawn("/no/such/program 2>/dev/null"));
  pid_t pid = 0;
  char* nothing[] = {nullptr};
  std::printf("spawn of a missing file %d\n",
              posix_spawn(&pid, "/no/such/program", nullptr, nullptr, nothing, environ));
  std::vector<std::thread> threads;
  int statuses[8] = {};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&statuses, i] {
      statuses[i] = i % 2 != 0 ? by_vfork("exit 7") : by_posix_spawn("exit 8");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int status : statuses) std::printf("from a thread %d\n", status);
}
