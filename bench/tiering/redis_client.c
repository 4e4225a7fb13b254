/* A client of redis-server whose reads are skewed: starts the server, stores values, asks for them, and prints the share of the answers
 * whose values were on the fast node (accesses.h).
 *
 *     redis_client FAST-NODE SLOW-NODE READS
 *
 * The values are of 1,000 bytes and take some 112 MiB with their keys. The newer a value, the more it is asked for: by Zipf 0.99, as in
 * caches and stores of sessions. The hot part are the newest 24 MiB. The client puts them on the slow node before the first read, so that
 * all of them have to be moved. An access is a read of a value; where it is, is asked of the kernel for each fourth one. */
#define _GNU_SOURCE
#include "accesses.h"
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
    VALUE = 1000,
    /* What a value takes in redis 7 with jemalloc: itself 1,024 bytes, its object, its key 16 each, its entry 32, its bucket 8 to 16. */
    STORED = 1104,
    KEYS = (112 << 20) / STORED,
    HOT_KEYS = (24 << 20) / STORED,
    PIPELINE = 32, /* commands that are sent at once */
    SAMPLED = 4,   /* reads to one whose place is asked */
    PATIENCE = 60, /* seconds that the server has for its start */
};

static int server, connection;
static FILE *answers; /* what comes from the connection */
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static uintptr_t values[KEYS]; /* addresses in the server, by key */
static double at_most[KEYS];   /* of the cumulated Zipf weights, by rank */

static void stop(const char *what, const char *said) {
    fprintf(stderr, "redis_client: %s: %s\n", what, said);
    exit(1);
}

static void serve(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    /* Redis refuses huge pages for itself unless it is told not to. */
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", address.sun_path, "--save", "", "--appendonly", "no",
           "--enable-debug-command", "yes", "--disable-thp", "no", "--rdbcompression", "no", "--loglevel", "warning", NULL);
    fail("redis-server");
}

static void start_server(void) {
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/redis-%d.socket", getpid());
    server = fork();
    if (server < 0)
        fail("fork");
    if (server == 0)
        serve();
    connection = socket(AF_UNIX, SOCK_STREAM, 0);
    for (int tries = PATIENCE * 10; connect(connection, (struct sockaddr *)&address, sizeof address) != 0; tries--) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            stop("redis-server", "ended before it answered");
        if (tries == 0)
            stop("redis-server", "does not answer");
        usleep(100000);
    }
    answers = fdopen(connection, "r");
    if (!answers)
        fail("fdopen");
}

static void end_server(void) {
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
}

static void send_all(const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t sent = write(connection, text, bytes);
        if (sent < 0)
            fail("redis-server's socket");
        text += sent, bytes -= sent;
    }
}

static void receive(char *text, size_t bytes) {
    if (fread(text, 1, bytes, answers) != bytes)
        stop("redis-server", "ended");
}

/* The next line of an answer, which must begin with this. */
static const char *receive_line(const char *begins) {
    static char line[512];
    if (!fgets(line, sizeof line, answers))
        stop("redis-server", "ended");
    if (strncmp(line, begins, strlen(begins)) != 0)
        stop("redis-server answers", line);
    return line;
}

/* Sends a command for each of some keys. */
static void send_commands(const char *name, const int *keys, int count) {
    char text[PIPELINE * 32];
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += snprintf(text + length, sizeof text - length, "%s key:%d\r\n", name, keys[i]);
    send_all(text, length);
}

/* The address of the bytes of an object, to which it has a pointer after 8 bytes. */
static uintptr_t bytes_of(uintptr_t object) {
    uintptr_t bytes = 0;
    struct iovec here = {&bytes, sizeof bytes}, there = {(void *)(object + 8), sizeof bytes};
    if (process_vm_readv(server, &here, 1, &there, 1, 0) != sizeof bytes)
        fail("process_vm_readv");
    return bytes;
}

/* Asks the server for the addresses of all values. It reads them for that: the newest first, so that the hot ones are not those that it
 * read last. */
static void find_values(void) {
    for (int first = 0; first < KEYS; first += PIPELINE) {
        int keys[PIPELINE], count = KEYS - first < PIPELINE ? KEYS - first : PIPELINE;
        for (int i = 0; i < count; i++)
            keys[i] = KEYS - 1 - first - i;
        send_commands("DEBUG OBJECT", keys, count);
        for (int i = 0; i < count; i++)
            values[keys[i]] = bytes_of(strtoull(receive_line("+Value at:0x") + strlen("+Value at:"), NULL, 16));
    }
}

static void move_hot(int slow) {
    static void *pages[HOT_KEYS];
    static int nodes[HOT_KEYS], results[HOT_KEYS];
    for (int i = 0; i < HOT_KEYS; i++)
        pages[i] = (void *)values[KEYS - HOT_KEYS + i], nodes[i] = slow;
    if (syscall(SYS_move_pages, server, (long)HOT_KEYS, pages, nodes, results, MPOL_MF_MOVE) < 0)
        fail("move_pages");
}

static void store(void) {
    char text[64];
    snprintf(text, sizeof text, "DEBUG POPULATE %d key %d\r\n", KEYS, VALUE);
    send_all(text, strlen(text));
    receive_line("+OK");
    find_values();
    double sum = 0;
    for (int rank = 0; rank < KEYS; rank++)
        at_most[rank] = sum += pow(rank + 1, -0.99);
}

/* The key of the next read. The newest has the highest number and rank 0. */
static int draw_key(void) {
    double drawn = draw() / 18446744073709551616.0 * at_most[KEYS - 1];
    int low = 0, high = KEYS - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (at_most[middle] < drawn)
            low = middle + 1;
        else
            high = middle;
    }
    return KEYS - 1 - low;
}

/* Reads the values of some keys, at most PIPELINE. */
static void read_values(const int *keys, int count) {
    char value[VALUE + 2];
    send_commands("GET", keys, count);
    for (int i = 0; i < count; i++) {
        receive_line("$1000\r\n");
        receive(value, sizeof value);
    }
}

/* Writes which of the sampled values are on the fast node, 1 or 0. */
static void ask_values(int fast, const int *keys, long count, int *is_fast) {
    void *pages[count];
    for (long i = 0; i < count; i++)
        pages[i] = (void *)values[keys[i * SAMPLED]];
    ask_nodes(server, count, pages, is_fast);
    for (long i = 0; i < count; i++)
        is_fast[i] = is_fast[i] == fast;
}

static void run_window(int fast, int reads, struct figures *figures) {
    int keys[reads], count = reads / SAMPLED, before[count], after[count];
    for (int i = 0; i < reads; i++)
        keys[i] = draw_key();
    ask_values(fast, keys, count, before);
    for (int i = 0; i < reads; i += PIPELINE)
        read_values(keys + i, reads - i < PIPELINE ? reads - i : PIPELINE);
    ask_values(fast, keys, count, after);
    for (int i = 0; i < count; i++)
        add_accesses(figures, 1, (before[i] + after[i]) / 2.0, keys[i * SAMPLED] >= KEYS - HOT_KEYS);
}

/* Seconds that the server was in the kernel, and its minor faults: fields 15 and 10 of its status (proc(5)). */
static double system_seconds(long *faults) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", server);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file))
        fail(path);
    fclose(file);
    unsigned long ticks;
    if (sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %ld %*u %*u %*u %*u %lu", faults, &ticks) != 2)
        stop(path, line);
    return (double)ticks / sysconf(_SC_CLK_TCK);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return fprintf(stderr, "usage: redis_client FAST-NODE SLOW-NODE READS\n"), 2;
    int fast = number(argv[1], "fast node", 0), slow = number(argv[2], "slow node", 0);
    long long work = number(argv[3], "reads", (long long)WINDOWS * SAMPLED), reads = work / WINDOWS;
    signal(SIGPIPE, SIG_IGN);
    start_server();
    atexit(end_server);
    store();
    move_hot(slow);
    struct figures figures = {0};
    for (int window = 0; window < WINDOWS; window++) {
        run_window(fast, reads, &figures);
        end_window(&figures, (window + 1) * reads);
    }
    long faults;
    double system = system_seconds(&faults);
    print_figures(&figures, 1, work, system, faults);
    return 0;
}
