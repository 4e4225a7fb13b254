// The program's own mappings: partial unmapping, growing, shrinking and moving by mremap, changed
// protection, discarded pages, fixed addresses, shared and file mappings, raw system calls.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kBig = 16 << 20;

unsigned char* map(size_t bytes, int flags = 0) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<unsigned char*>(memory);
}

bool is_zero(const unsigned char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

void unmap_in_parts() {
  unsigned char* memory = map(kBig);
  CHECK(is_zero(memory, kBig));
  fill_pattern(memory, kBig, 1);
  CHECK(munmap(memory + kBig / 4, kBig / 4) == 0);
  CHECK(has_pattern(memory, kBig / 4, 1));
  for (size_t i = kBig / 2; i < kBig; i += kPage) CHECK(memory[i] == pattern_byte(i, 1));
  // Another mapping in the hole.
  void* hole = mmap(memory + kBig / 4, kBig / 4, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  CHECK(hole == memory + kBig / 4 && is_zero(memory + kBig / 4, kBig / 4));
  CHECK(munmap(memory, kBig) == 0);
  for (size_t i = 0; i < 40; ++i) {  // page by page, from both ends
    unsigned char* small = map(2 << 20);
    for (size_t page = 0; page < (2 << 20) / kPage / 2; ++page) {
      small[page * kPage] = 1;
      CHECK(munmap(small + page * kPage, kPage) == 0);
      CHECK(munmap(small + (2 << 20) - (page + 1) * kPage, kPage) == 0);
    }
  }
  std::printf("unmapped in parts\n");
}

void remap() {
  unsigned char* memory = map(kBig);
  fill_pattern(memory, kBig, 2);
  void* grown = mremap(memory, kBig, 2 * kBig, MREMAP_MAYMOVE);
  CHECK(grown != MAP_FAILED && has_pattern(grown, kBig, 2));
  CHECK(is_zero(static_cast<unsigned char*>(grown) + kBig, kBig));
  void* shrunk = mremap(grown, 2 * kBig, kBig / 2, 0);
  CHECK(shrunk == grown && has_pattern(shrunk, kBig / 2, 2));
  unsigned char* target = map(kBig);
  void* moved = mremap(shrunk, kBig / 2, kBig / 2, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  CHECK(moved == target && has_pattern(target, kBig / 2, 2));
  CHECK(munmap(target, kBig) == 0);
  std::printf("remapped\n");
}

void discard_and_protect() {
  unsigned char* memory = map(kBig);
  fill_pattern(memory, kBig, 3);
  CHECK(madvise(memory + kBig / 4, kBig / 2, MADV_DONTNEED) == 0);
  CHECK(has_pattern(memory, kBig / 4, 3) && is_zero(memory + kBig / 4, kBig / 2));
  fill_pattern(memory, kBig, 4);
  CHECK(mprotect(memory, kBig, PROT_READ) == 0 && has_pattern(memory, kBig, 4));
  CHECK(mprotect(memory, kBig / 2, PROT_READ | PROT_WRITE) == 0);
  fill_pattern(memory, kBig / 2, 4);
  const pid_t pid = fork();
  if (pid == 0) {
    memory[kBig - 1] = 1;  // read-only: dies by SIGSEGV
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  CHECK(mprotect(memory, kBig, PROT_NONE) == 0);
  const int pipe_end = open("/dev/zero", O_RDONLY);
  CHECK(read(pipe_end, memory, 10) == -1 && errno == EFAULT);
  CHECK(mprotect(memory, kBig, PROT_READ | PROT_WRITE) == 0 && has_pattern(memory, kBig, 4));
  close(pipe_end);
  CHECK(madvise(memory, kBig, MADV_HUGEPAGE) == 0 || errno == EINVAL);
  CHECK(madvise(memory, kBig, MADV_FREE) == 0 || errno == EINVAL);
  CHECK(munmap(memory, kBig) == 0);
  std::printf("discarded and protected\n");
}

void raw_calls() {
  const long raw = syscall(SYS_mmap, nullptr, kBig, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(raw != -1);
  auto* memory = reinterpret_cast<unsigned char*>(raw);
  fill_pattern(memory, kBig, 5);
  CHECK(syscall(SYS_munmap, memory, kBig / 2) == 0);
  for (size_t i = kBig / 2; i < kBig; i += 1000) CHECK(memory[i] == pattern_byte(i, 5));
  CHECK(munmap(memory + kBig / 2, kBig / 2) == 0);
  std::printf("raw calls\n");
}

void shared_and_files() {
  auto* shared = static_cast<unsigned char*>(
      mmap(nullptr, kBig, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(shared != MAP_FAILED);
  const pid_t pid = fork();
  if (pid == 0) {
    fill_pattern(shared, kBig, 7);
    _exit(0);
  }
  CHECK(waitpid(pid, nullptr, 0) == pid && has_pattern(shared, kBig, 7));
  CHECK(munmap(shared, kBig) == 0);
  FILE* file = std::tmpfile();
  CHECK(file != nullptr && ftruncate(fileno(file), kBig) == 0);
  auto* mapped = static_cast<unsigned char*>(
      mmap(nullptr, kBig, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0));
  CHECK(mapped != MAP_FAILED);
  fill_pattern(mapped, kBig, 8);
  std::vector<unsigned char> copy(kBig);
  CHECK(pread(fileno(file), copy.data(), kBig, 0) == static_cast<ssize_t>(kBig));
  CHECK(has_pattern(copy.data(), kBig, 8));
  CHECK(munmap(mapped, kBig) == 0);
  std::fclose(file);
  std::printf("shared and files\n");
}

void wrong_arguments() {
  CHECK(mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(nullptr, kBig, PROT_READ, MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(nullptr, kBig, PROT_READ, MAP_PRIVATE, 9999, 0) == MAP_FAILED && errno == EBADF);
  CHECK(mmap(nullptr, SIZE_MAX / 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
  CHECK(errno == ENOMEM);
  CHECK(munmap(reinterpret_cast<void*>(1), kPage) == -1 && errno == EINVAL);
  CHECK(munmap(nullptr, 0) == -1 && errno == EINVAL);
  std::printf("wrong arguments refused\n");
}

}  // namespace

int main() {
  unmap_in_parts();
  remap();
  discard_and_protect();
  raw_calls();
  shared_and_files();
  wrong_arguments();
  unsigned char* reserve = map(size_t{1} << 38, MAP_NORESERVE);
  reserve[size_t{1} << 37] = 1;
  CHECK(munmap(reserve, size_t{1} << 38) == 0);
  std::printf("a large reservation\n");
}
