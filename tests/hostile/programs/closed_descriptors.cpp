// Descriptors 0 to 2 closed before exec: the next file opened gets number 0, and nothing that a
// library prints or opens may land there. Also: the program counts its descriptors, closes all it did
// not open, as daemons do, and continues.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr int kReport = 200;  // where the standard output went

void churn() {
  for (size_t size = 1; size < (2 << 20); size = size * 2 + 1) {
    void* block = keep(std::malloc(size));
    CHECK(block != nullptr);
    fill_pattern(block, size, 2);
    CHECK(has_pattern(block, size, 2));
    std::free(block);
  }
}

void report_open(const char* what) {
  const int fd = open("/dev/null", O_RDWR);
  dprintf(kReport, "%s: the next descriptor is %d\n", what, fd);
  close(fd);
}

int after_exec() {
  report_open("closed 0 to 2");
  churn();
  std::thread(churn).join();
  report_open("after allocations");
  const pid_t pid = fork();
  if (pid == 0) {
    churn();
    report_open("in a child");
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  return 0;
}

int close_all() {
  std::vector<unsigned char*> old;
  for (int i = 0; i < 8; ++i) {
    old.push_back(static_cast<unsigned char*>(std::malloc(2 << 20)));
    fill_pattern(old.back(), 2 << 20, 3);
  }
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != kReport) close(fd);
  }
  churn();
  report_open("all closed");
  // The program's own files must stay its own, whatever number they have.
  std::vector<int> opened;
  for (int i = 0; i < 100; ++i) opened.push_back(open("/dev/zero", O_RDONLY));
  for (int round = 0; round < 20; ++round) {
    churn();
    usleep(10000);
    for (unsigned char* block : old) CHECK(has_pattern(block, 2 << 20, 3));
  }
  char byte = 1;
  for (const int fd : opened) CHECK(read(fd, &byte, 1) == 1 && byte == 0);
  dprintf(kReport, "still working\n");
  const pid_t pid = fork();
  if (pid == 0) {
    churn();
    _exit(9);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  dprintf(kReport, "child %d\n", WEXITSTATUS(status));
  return 0;
}

int close_range_call() {
  auto* old = static_cast<unsigned char*>(std::malloc(8 << 20));
  fill_pattern(old, 8 << 20, 4);
  syscall(SYS_close_range, 0, kReport - 1, 0);
  syscall(SYS_close_range, kReport + 1, ~0u, 0);
  churn();
  usleep(200000);
  CHECK(has_pattern(old, 8 << 20, 4));
  report_open("after close_range");
  return 0;
}

int fill_table() {
  const rlimit bound{256, 256};
  CHECK(setrlimit(RLIMIT_NOFILE, &bound) == 0);
  std::vector<int> opened;
  for (;;) {
    const int fd = open("/dev/null", O_RDONLY);
    if (fd < 0) break;
    opened.push_back(fd);
  }
  const int last = errno;
  churn();
  std::thread(churn).join();
  dprintf(kReport, "first %d, last errno %d, %zu descriptors\n", opened[0], last, opened.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "after-exec") return after_exec();
  if (what.empty()) {
    std::fprintf(stderr, "usage: closed_descriptors exec|all|range|full\n");
    return 2;
  }
  CHECK(dup2(1, kReport) == kReport);
  if (what == "all") return close_all();
  if (what == "range") return close_range_call();
  if (what == "full") return fill_table();
  for (int fd = 0; fd < 3; ++fd) close(fd);
  execl(argv[0], argv[0], "after-exec", nullptr);
  return 126;
}
