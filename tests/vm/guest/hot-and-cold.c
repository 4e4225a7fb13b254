/* Makes a large array that is never touched again and a small one that always is, each in its own
 * function, works, and prints the kernel's report of the nodes of both: "cold N1=6144", and on standard
 * error, because Isotherm changes it, the hot one's policy. Usage: hot-and-cold MILLIONS [STATUS [NODE [HABITS]]]:
 * millions of accesses, not seconds, because the clocks of a guest run on while a busy host keeps its
 * processors waiting. With NODE, from 0, the hot array is first touched there. Habits: f makes a child after
 * each million, which checks whether both arrays are intact; d ignores SIGTERM; i continues until its standard
 * input ends, however many millions that takes; r rests for half a second after each; w writes after each
 * million to /tmp/where its report of both arrays, as at the end; a adds that of the cold one to /tmp/all at the end; t has a
 * child that makes a cold array of its own beside its parent's, and prints where it is: "cold-of-child N1=6144"; h has both
 * arrays in huge pages, and prints at first and at the end how much of the program is in such pages: "huge 28672 kB"; p gives the hot
 * array the default policy again once it is filled, because the kernel balances no memory that has a policy; s has both arrays in small
 * pages: khugepaged would collapse the end of the hot one with its cold neighbour, and on the neighbour's node. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, HOT = 4 << 20, COLD = 6 * HOT, COUNT = HOT / sizeof(size_t), NODES = 8 };

/* Content of the hot array and each sixth of the cold one: all indices, as one cycle in random order. */
static size_t cycle[COUNT];

/* Sattolo's shuffle. */
static void make_cycle(void) {
    unsigned random = 1;
    for (size_t i = 0; i < COUNT; i++)
        cycle[i] = i;
    for (size_t i = COUNT - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        size_t other = (random >> 8) % i, kept = cycle[i];
        cycle[i] = cycle[other];
        cycle[other] = kept;
    }
}

static int has_huge_pages, has_small_pages, has_default_policy;

/* Memory for an array, in huge pages from its first boundary on, if such are wanted. */
static char *make(size_t bytes) {
    size_t huge = has_huge_pages ? 2 << 20 : 0;
    char *memory = huge ? aligned_alloc(huge, bytes) : has_small_pages ? aligned_alloc(PAGE, bytes) : malloc(bytes);
    int advice = huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
    if ((huge || has_small_pages) && madvise(memory, bytes, advice) != 0)
        perror("madvise");
    return memory;
}

static void print_huge(const char *name) {
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "AnonHugePages:", 14) == 0)
            printf("%s %lu kB\n", name, strtoul(line + 14, NULL, 10));
    if (file)
        fclose(file);
    fflush(stdout);
}

/* The kernel copies: a sampler sees no access before both arrays exist, so nothing is decided
 * before. */
static void fill(char *memory) {
    struct iovec to = {memory, HOT}, from = {cycle, HOT};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != HOT)
        perror("process_vm_readv");
}

/* As fill: the program itself never touches the cold array. */
static int holds_cycle(char *memory) {
    static char copy[HOT];
    struct iovec to = {copy, HOT}, from = {memory, HOT};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == HOT && memcmp(copy, cycle, HOT) == 0;
}

__attribute__((noinline)) static char *make_cold(void) {
    char *memory = make(COLD);
    for (size_t at = 0; at < COLD; at += HOT)
        fill(memory + at);
    return memory;
}

__attribute__((noinline)) static char *make_hot(unsigned long nodes) {
    char *memory = make(HOT);
    size_t page = ((size_t)memory + PAGE - 1) / PAGE * PAGE;
    if (nodes && syscall(SYS_mbind, page, HOT, MPOL_PREFERRED, &nodes, 8 * sizeof nodes, 0) != 0)
        perror("mbind");
    fill(memory);
    if (nodes && has_default_policy && syscall(SYS_mbind, page, HOT, MPOL_DEFAULT, NULL, 0, 0) != 0)
        perror("mbind");
    return memory;
}

/* An emulated processor takes interrupts between blocks of instructions only, so a timer's samples all
 * fall on a block's first instruction. Here that is the load: without that no access would be seen. */
__attribute__((noinline)) static size_t walk(const size_t *next, size_t at, size_t steps) {
    do
        at = next[at];
    while (--steps);
    return at;
}

/* Directly to the file: a stream would allocate its buffer, and Isotherm counts every allocation. */
static void print_nodes(int file, const char *name, char *memory, size_t bytes) {
    size_t pages_on[NODES] = {0}, elsewhere = 0;
    for (size_t at = 0; at < bytes; at += PAGE) {
        void *page = memory + at;
        int node = -1;
        syscall(SYS_move_pages, 0, 1L, &page, NULL, &node, 0);
        if (node >= 0 && node < NODES)
            pages_on[node]++;
        else
            elsewhere++;
    }
    dprintf(file, "%s", name);
    for (int node = 0; node < NODES; node++)
        if (pages_on[node])
            dprintf(file, " N%d=%zu", node, pages_on[node]);
    if (elsewhere)
        dprintf(file, " nowhere=%zu", elsewhere);
    dprintf(file, "\n");
}

/* The file gets its name when it is complete. */
static void write_where(char *cold, char *hot) {
    int file = open("/tmp/where.new", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return perror("/tmp/where.new");
    print_nodes(file, "cold", cold, COLD);
    print_nodes(file, "hot", hot, HOT);
    close(file);
    if (rename("/tmp/where.new", "/tmp/where") != 0)
        perror("/tmp/where");
}

/* A child's own cold array. */
static void make_cold_in_child(void) {
    pid_t child = fork();
    if (child == 0) {
        print_nodes(1, "cold-of-child", make_cold(), COLD);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        perror("a child");
}

static void print_policy(const char *name, char *memory) {
    int mode = -1;
    unsigned long nodes = 0;
    if (syscall(SYS_get_mempolicy, &mode, &nodes, 8 * sizeof nodes, memory, MPOL_F_ADDR) != 0)
        perror("get_mempolicy");
    fprintf(stderr, "%s has policy %d of nodes %#lx\n", name, mode, nodes);
}

static int both_whole(char *cold, char *hot) {
    int whole = holds_cycle(hot);
    for (size_t i = 0; i < COLD; i += HOT)
        whole &= holds_cycle(cold + i);
    return whole;
}

/* Whether both arrays are intact in a child. */
static int child_finds_whole(char *cold, char *hot) {
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(!both_whole(cold, hot));
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int input_has_ended(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

int main(int argc, char **argv) {
    int millions = argc > 1 ? atoi(argv[1]) : 1;
    const char *habits = argc > 4 ? argv[4] : "";
    if (strchr(habits, 'd'))
        signal(SIGTERM, SIG_IGN);
    has_huge_pages = strchr(habits, 'h') != NULL;
    has_small_pages = strchr(habits, 's') != NULL;
    has_default_policy = strchr(habits, 'p') != NULL;
    make_cycle();
    char *cold = make_cold(), *hot = make_hot(argc > 3 ? 1UL << atoi(argv[3]) : 0);
    print_nodes(1, "cold-at-first", cold, COLD);
    print_nodes(1, "hot-at-first", hot, HOT);
    if (has_huge_pages)
        print_huge("huge-at-first");
    size_t at = 0;
    int whole = 1;
    int until_input_ends = strchr(habits, 'i') != NULL;
    for (int i = 0; until_input_ends ? !input_has_ended() : i < millions; i++) {
        at = walk((const size_t *)hot, at, 1000000);
        if (strchr(habits, 'f'))
            whole &= child_finds_whole(cold, hot);
        if (strchr(habits, 'r'))
            usleep(500000);
        if (strchr(habits, 'w'))
            write_where(cold, hot);
    }
    if (strchr(habits, 't'))
        make_cold_in_child();
    if (strchr(habits, 'a')) {
        int file = open("/tmp/all", O_WRONLY | O_CREAT | O_APPEND, 0600);
        print_nodes(file, "cold", cold, COLD);
        close(file);
    }
    print_nodes(1, "cold", cold, COLD);
    print_nodes(1, "hot", hot, HOT);
    if (has_huge_pages)
        print_huge("huge");
    print_policy("hot", hot);
    whole &= at < COUNT && both_whole(cold, hot);
    printf("contents %s\n", whole ? "whole" : "damaged");
    return argc > 2 ? atoi(argv[2]) : 0;
}
