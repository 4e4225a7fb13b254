/* Ends by the system call of one thread, or by a filter that kills one thread: the kernel keeps a process for
   as long as it has a thread, the library's own included. */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *text) {
  if (write(1, text, strlen(text)) < 0) abort();
}

/* Lets a thread write and end, alone or with the whole process; what else it calls kills it. */
static void filter(int whole) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, whole ? SYS_exit_group : SYS_exit, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
  };
  struct sock_fprog code = {sizeof program / sizeof program[0], program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code, 0, 0) != 0)
    say("no filter\n");
}

static void strict(void) {
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) say("no strict mode\n");
}

static void *outlive(void *leader) {
  pthread_join(*(pthread_t *)leader, NULL);
  free(malloc(100000));
  say("the other thread\n");
  syscall(SYS_exit, 0);
  return NULL;
}

__attribute__((noinline)) static char *make(size_t bytes) { return malloc(bytes); }

/* Has data that the library can move, and lives until a byte is written to it. */
static void wait_for_input(void) {
  static volatile size_t bytes = 4 << 20;
  for (int i = 0; i < 4; i++) memset(make(bytes), 1, bytes);
  char byte;
  if (read(0, &byte, 1) < 0) abort();
}

int main(int count, char **words) {
  const char *how = count > 1 ? words[1] : "";
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  char *block = malloc(8);
  memset(block, 1, 8);
  if (count > 2) wait_for_input();
  if (strncmp(how, "strict", 6) == 0) strict();
  if (strncmp(how, "filter", 6) == 0) filter(strcmp(how, "filter-whole") == 0);
  say("here\n");
  if (strcmp(how, "strict-killed") == 0 || strcmp(how, "filter-killed") == 0) syscall(SYS_exit_group, 5);
  if (strcmp(how, "filter-whole") == 0) exit(3);
  if (strcmp(how, "unshare") == 0) say(unshare(CLONE_NEWUSER) == 0 ? "apart\n" : "refused\n");
  if (strcmp(how, "thread") == 0) {
    static pthread_t self;
    pthread_t other;
    self = pthread_self();
    pthread_create(&other, NULL, outlive, &self);
    pthread_exit(NULL);
  }
  syscall(SYS_exit, 3);
}
