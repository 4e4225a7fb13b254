// System calls on buffers of the heap and of large mappings, again and again while pages may be
// protected, moved or away: the kernel must never find them missing (EFAULT) or with other content.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>

#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kBytes = 1 << 20;

/// Large buffers, half from the allocator and half mapped, so that most of them are cold.
struct Buffers {
  std::vector<unsigned char*> all;
  Buffers() {
    for (int i = 0; i < 32; ++i) {
      void* memory = i % 2 == 0 ? std::malloc(kBytes)
                                : mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHECK(memory != nullptr && memory != MAP_FAILED);
      all.push_back(static_cast<unsigned char*>(memory));
      fill_pattern(all.back(), kBytes, 1);
    }
  }
  unsigned char* pick(unsigned number) { return all[number * 7 % all.size()]; }
};

void files(Buffers* buffers, unsigned turn) {
  static FILE* file = std::tmpfile();
  CHECK(file != nullptr);
  const int fd = fileno(file);
  unsigned char* from = buffers->pick(turn);
  unsigned char* to = buffers->pick(turn + 1);
  CHECK(pwrite(fd, from, kBytes, 0) == static_cast<ssize_t>(kBytes));
  CHECK(pread(fd, to, kBytes, 0) == static_cast<ssize_t>(kBytes));
  CHECK(has_pattern(to, kBytes, 1));
  iovec parts[16];
  for (size_t i = 0; i < 16; ++i) parts[i] = {buffers->pick(turn + static_cast<unsigned>(i)) + i * 4096, 4096};
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(writev(fd, parts, 16) == 16 * 4096);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(readv(fd, parts, 16) == 16 * 4096);
  for (size_t i = 0; i < 16; ++i) {
    const auto* page = static_cast<unsigned char*>(parts[i].iov_base);
    for (size_t j = 0; j < 4096; j += 64) CHECK(page[j] == pattern_byte(i * 4096 + j, 1));
  }
}

void direct_file(Buffers* buffers, unsigned turn) {
  static const int fd = [] {
    char name[] = "/var/tmp/hostile-XXXXXX";
    const int plain = mkstemp(name);
    if (plain < 0) return -1;
    const int direct = open(name, O_RDWR | O_DIRECT);
    unlink(name);
    close(plain);
    return direct;
  }();
  if (fd < 0) return;  // the file system has no direct I/O
  unsigned char* buffer = buffers->pick(turn * 2 + 1);  // mapped: aligned to a page
  auto* aligned = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(buffer) + 4095) & ~uintptr_t{4095});
  if (aligned != buffer) return;
  const ssize_t wrote = pwrite(fd, aligned, 65536, 0);
  if (wrote < 0) {
    CHECK(errno != EFAULT);
    return;
  }
  CHECK(pread(fd, aligned, 65536, 0) == 65536 && has_pattern(aligned, 65536, 1));
}

void sockets(Buffers* buffers, unsigned turn) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  unsigned char* from = buffers->pick(turn);
  unsigned char* to = buffers->pick(turn + 3);
  iovec out{from + 8192, 32768};
  iovec in{to + 8192, 32768};
  msghdr send_header{};
  send_header.msg_iov = &out;
  send_header.msg_iovlen = 1;
  msghdr receive_header{};
  receive_header.msg_iov = &in;
  receive_header.msg_iovlen = 1;
  CHECK(sendmsg(ends[0], &send_header, 0) == 32768);
  CHECK(recvmsg(ends[1], &receive_header, MSG_WAITALL) == 32768);
  CHECK(send(ends[0], from + 100000, 5000, 0) == 5000);
  CHECK(recv(ends[1], to + 100000, 5000, MSG_WAITALL) == 5000);
  CHECK(has_pattern(to, kBytes, 1));
  close(ends[0]);
  close(ends[1]);
}

void pipes_and_events(Buffers* buffers, unsigned turn) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  unsigned char* from = buffers->pick(turn + 2);
  unsigned char* to = buffers->pick(turn + 9);
  CHECK(write(ends[1], from + 50000, 60000) == 60000);
  auto* events = reinterpret_cast<epoll_event*>(to + 4096 * 20);
  const int poller = epoll_create1(0);
  auto* interest = reinterpret_cast<epoll_event*>(to + 4096 * 30);
  interest->events = EPOLLIN;
  interest->data.u64 = 42;
  CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], interest) == 0);
  CHECK(epoll_wait(poller, events, 4, 1000) == 1 && events->data.u64 == 42);
  auto* polled = reinterpret_cast<pollfd*>(to + 4096 * 40);
  *polled = {ends[0], POLLIN, 0};
  CHECK(poll(polled, 1, 1000) == 1 && polled->revents == POLLIN);
  for (size_t got = 0; got < 60000;) {
    const ssize_t part = read(ends[0], to + 50000 + got, 60000 - got);
    CHECK(part > 0);
    got += static_cast<size_t>(part);
  }
  iovec gift{from + 4096 * 100, 4096};
  CHECK(vmsplice(ends[1], &gift, 1, 0) == 4096);
  CHECK(read(ends[0], to + 4096 * 100, 4096) == 4096);
  fill_pattern(to, kBytes, 1);
  close(poller);
  close(ends[0]);
  close(ends[1]);
}

void small_calls(Buffers* buffers, unsigned turn) {
  unsigned char* buffer = buffers->pick(turn + 5);
  CHECK(getrandom(buffer + 4096 * 7, 20000, 0) == 20000);
  CHECK(uname(reinterpret_cast<utsname*>(buffer + 4096 * 17)) == 0);
  std::strcpy(reinterpret_cast<char*>(buffer + 4096 * 27), "/dev/null");
  CHECK(stat(reinterpret_cast<char*>(buffer + 4096 * 27), reinterpret_cast<struct stat*>(buffer + 4096 * 37)) == 0);
  CHECK(getcwd(reinterpret_cast<char*>(buffer + 4096 * 47), 4096) != nullptr);
  CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, buffer + 4096 * 57) == 0);
  auto* word = reinterpret_cast<uint32_t*>(buffer + 4096 * 67);
  *word = 5;
  CHECK(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 6, nullptr, nullptr, 0) == -1 && errno == EAGAIN);
  iovec local{buffer + 4096 * 77, 4096};
  iovec remote{buffers->pick(turn + 6) + 4096 * 87, 4096};
  const ssize_t copied = static_cast<ssize_t>(
      syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0));
  CHECK(copied == 4096 || errno != EFAULT);
  stack_t alternate{};
  alternate.ss_sp = buffer + 4096 * 100;
  alternate.ss_size = 65536;
  CHECK(sigaltstack(&alternate, nullptr) == 0);
  auto* previous = reinterpret_cast<stack_t*>(buffer + 4096 * 130);
  alternate.ss_flags = SS_DISABLE;
  CHECK(sigaltstack(&alternate, previous) == 0 && previous->ss_size == 65536);
  fill_pattern(buffer, kBytes, 1);
}

void rounds(unsigned seed) {
  Buffers buffers;
  timespec begin{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  timespec now = begin;
  // A fixed least number of rounds, and at least 0.7 s, so that several periods of protection pass.
  for (unsigned turn = seed; turn < seed + 30 || now.tv_sec * 1000 + now.tv_nsec / 1000000 <
                                                     begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 700;
       ++turn) {
    files(&buffers, turn);
    direct_file(&buffers, turn);
    sockets(&buffers, turn);
    pipes_and_events(&buffers, turn);
    small_calls(&buffers, turn);
    clock_gettime(CLOCK_MONOTONIC, &now);
  }
  for (unsigned char* buffer : buffers.all) CHECK(has_pattern(buffer, kBytes, 1));
}

}  // namespace

int main() {
  rounds(0);
  std::thread other(rounds, 100);  // files() shares one file: the threads run one after another
  other.join();
  std::printf("no call failed\n");
}
