/* Maps, unmaps and forks as its arguments say, and prints for each array how many MiB of it have which memory policy:
 *   map:N        maps N MiB, and touches them
 *   malloc:N     the same from the heap
 *   unmap free   gives the first array back
 *   print        prints "MODE=MIB ..." over all arrays
 *   wait         prints a line, and waits for one
 *   fork         the child goes on with the next argument, the parent with the one after "end" when the child has ended
 *   end          ends the process
 *   die          ends it by SIGKILL
 *   exec         starts the program anew, with the arguments that follow
 * It allocates nothing else. */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, MOST = 64, MODES = 8 };

static char *arrays[MOST];
static size_t sizes[MOST];
static int first, last;

static void add(char *array, size_t bytes) {
    if (!array || array == MAP_FAILED || last == MOST)
        _exit(3);
    for (size_t at = 0; at < bytes; at += 4096)
        array[at] = 1;
    arrays[last] = array;
    sizes[last++] = bytes;
}

static void print(void) {
    size_t found[MODES] = {0};
    for (int i = first; i < last; i++)
        for (size_t at = 0; at < sizes[i]; at += MIB) {
            int mode = 0;
            syscall(SYS_get_mempolicy, &mode, NULL, 0, arrays[i] + at, MPOL_F_ADDR);
            found[mode % MODES]++;
        }
    for (int mode = 0; mode < MODES; mode++)
        if (found[mode])
            dprintf(1, "%d=%zu ", mode, found[mode]);
    dprintf(1, "\n");
}

static void wait_for_a_line(void) {
    char byte;
    dprintf(1, "waits\n");
    while (read(0, &byte, 1) == 1 && byte != '\n')
        ;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *colon = strchr(word, ':');
        size_t bytes = colon ? strtoul(colon + 1, NULL, 10) * MIB : 0;
        if (strncmp(word, "map:", 4) == 0) {
            add(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
        } else if (strncmp(word, "malloc:", 7) == 0) {
            add(malloc(bytes), bytes);
        } else if (strcmp(word, "unmap") == 0) {
            munmap(arrays[first], sizes[first]);
            first++;
        } else if (strcmp(word, "free") == 0) {
            free(arrays[first++]);
        } else if (strcmp(word, "print") == 0) {
            print();
        } else if (strcmp(word, "wait") == 0) {
            wait_for_a_line();
        } else if (strcmp(word, "fork") == 0) {
            pid_t child = fork();
            if (child < 0)
                return 3;
            if (child > 0) {
                waitpid(child, NULL, 0);
                while (i < argc && strcmp(argv[i], "end") != 0)
                    i++;
            }
        } else if (strcmp(word, "end") == 0) {
            _exit(0);
        } else if (strcmp(word, "die") == 0) {
            raise(SIGKILL);
        } else if (strcmp(word, "exec") == 0) {
            argv[i] = argv[0];
            execv("/proc/self/exe", argv + i);
            return 3;
        } else {
            return 2;
        }
    }
    return 0;
}
