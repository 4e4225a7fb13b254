// A service for the tests of `record --pid`. One thread works all the time, others start later and end soon. Each kind reads a static array of its own at
// random, and both read a mapping; another static array is written once.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 1 << 20, MAPPED = 4 * COUNT };
static double cold[COUNT], steady[COUNT], brief[COUNT];
static double *mapped;
static volatile double result;

static inline double accessed(const double *array, unsigned *random) {
    *random = *random * 1664525u + 1013904223u;
    double sum = array[*random >> 12];
    if ((*random >> 20) % 8 == 0) sum += mapped[*random >> 10];
    return sum;
}

static void *work_all_the_time(void *unused) {
    unsigned random = 1;
    for (double sum = 0;; result = sum)
        for (int i = 0; i < 1000000; i++) sum += accessed(steady, &random);
    return unused;
}

static void *work_for_a_while(void *unused) {
    unsigned random = 7;
    double sum = 0;
    for (int i = 0; i < 3000000; i++) sum += accessed(brief, &random);
    result = sum;
    return unused;
}

static void start(void *(*work)(void *), int waits) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL)) exit(3);
    if (waits) pthread_join(thread, NULL);
}

int main(int count, char **words) {
    // Nothing is left behind where a test is killed.
    alarm(600);
    mapped = mmap(NULL, MAPPED * sizeof *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return 2;
    for (int i = 0; i < COUNT; i++) cold[i] = steady[i] = brief[i] = i;
    result = cold[count];
    for (int i = 0; i < MAPPED; i++) mapped[i] = i;
    start(work_all_the_time, 0);
    puts("works");
    fflush(stdout);
    for (;;) start(work_for_a_while, 1);
}
