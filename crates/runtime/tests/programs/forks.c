// Threads that allocate while the main thread forks, vforks, execs and spawns.
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int stop;

static void *churn(void *seed) {
    unsigned state = (unsigned)(size_t)seed;
    char *blocks[256] = {0};
    while (!stop) {
        state = state * 1664525 + 1013904223;
        unsigned slot = (state >> 8) % 256;
        free(blocks[slot]);
        size_t bytes = 1 + (state >> 16) % 30000;
        blocks[slot] = malloc(bytes);
        blocks[slot][bytes - 1] = 1;
        // Leaves the processors to the forks now and then.
        if ((state >> 8) % 512 == 0)
            usleep(1000);
    }
    for (int i = 0; i < 256; i++)
        free(blocks[i]);
    return NULL;
}

static int child_work(int number) {
    char *mapping = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapping[1 << 20] = 5;
    char *blocks[1000];
    for (int i = 0; i < 1000; i++) {
        blocks[i] = malloc(1 + i * 37);
        memset(blocks[i], number, 1 + i * 37);
    }
    int wrong = mapping[1 << 20] != 5;
    for (int i = 0; i < 1000; i++) {
        wrong += blocks[i][i * 37] != (char)number;
        free(blocks[i]);
    }
    munmap(mapping, 3 << 20);
    return wrong ? 1 : 42;
}

int main(void) {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    char *kept = malloc(5 << 20);
    memset(kept, 9, 5 << 20);
    int good = 0;
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i % 10 == 0) {
                // Grandchildren, too.
                pid_t grandchild = fork();
                if (grandchild == 0)
                    _exit(child_work(i));
                int status;
                waitpid(grandchild, &status, 0);
                _exit(WEXITSTATUS(status));
            }
            if (kept[(5 << 20) - 1] != 9)
                _exit(1);
            kept[0] = 1;
            _exit(child_work(i));
        }
        int status;
        waitpid(child, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 42;
    }
    printf("forks: %d\n", good);
    good = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        good += WEXITSTATUS(status) == 7;
    }
    printf("vforks: %d\n", good);
    good = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child;
        char *arguments[] = {"sh", "-c", "exit 8", NULL};
        if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0)
            continue;
        int status;
        waitpid(child, &status, 0);
        good += WEXITSTATUS(status) == 8;
    }
    printf("spawns: %d, system: %d\n", good, WEXITSTATUS(system("exit 9")));
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("kept: %d %d\n", kept[0], kept[4 << 20]);
    return 0;
}
