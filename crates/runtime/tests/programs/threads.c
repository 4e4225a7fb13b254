// 10,000 threads in sequence, destructors that allocate and free, small stacks, work handed over.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_key_t keys[40];
static long sum;

static void destructor(void *value) {
    char *block = malloc(300);
    memset(block, 2, 300);
    __atomic_add_fetch(&sum, block[7], __ATOMIC_RELAXED);
    free(block);
    free(value);
}

static void *work(void *argument) {
    for (int i = 0; i < 40; i += 13)
        pthread_setspecific(keys[i], malloc(64));
    char *blocks[20];
    for (int i = 0; i < 20; i++) {
        blocks[i] = malloc(100 * i + 1);
        blocks[i][0] = 1;
    }
    for (int i = 0; i < 19; i++)
        free(blocks[i]);
    free(argument);
    return blocks[19];
}

static long resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size, pages = 0;
    if (fscanf(file, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    fclose(file);
    return pages * 4096;
}

// A producer's blocks, of sizes that grow into arenas of their own, freed by another thread.
static void *slots[4096];
static void *produce(void *unused) {
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 4096; i++) {
            char *block = malloc(64 + i % 700);
            *block = 1;
            free(__atomic_exchange_n(&slots[i], block, __ATOMIC_ACQ_REL));
        }
    return unused;
}

int main(void) {
    for (int i = 0; i < 40; i++)
        pthread_key_create(&keys[i], destructor);
    long before = 0;
    for (int i = 0; i < 10000; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, work, malloc(200)) != 0)
            return 1;
        pthread_join(thread, &result);
        free(result);
        if (i == 1000)
            before = resident();
    }
    long grown = resident() - before;
    printf("sum %ld, grown by more than 16 MiB: %d\n", sum, grown > (16 << 20));
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, produce, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4096; i++)
        free(slots[i]);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    pthread_t small;
    int error = pthread_create(&small, &attributes, work, malloc(200));
    printf("smallest stack: %d\n", error);
    if (!error) {
        void *result;
        pthread_join(small, &result);
        free(result);
    }
    return 0;
}
