// Modules loaded and unloaded, exceptions and longjmp across frames that allocated, destructors of
// thread-local and static objects and exit handlers that allocate.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Late {
    ~Late() {
        std::vector<int> numbers(1000, 4);
        printf("late %d\n", numbers[999]);
    }
};
static Late of_process;
static thread_local Late of_thread;

static void leaving() {
    char *block = (char *)malloc(5000);
    strcpy(block, "exit handler");
    puts(block);
    free(block);
}

static int thrower(int depth) {
    std::string held(100 + depth, 'h');
    if (depth == 0)
        throw std::runtime_error(held + "thrown");
    return thrower(depth - 1) + (int)held.size();
}

static jmp_buf back;
static void jumper(int depth) {
    void *lost = malloc(40);
    if (depth == 0)
        longjmp(back, 5);
    jumper(depth - 1);
    free(lost);
}

int main(int, char **arguments) {
    atexit(leaving);
    long total = 0;
    for (int round = 0; round < 200; round++) {
        void *module = dlopen(arguments[1 + round % 2], RTLD_NOW);
        if (!module) {
            puts(dlerror());
            return 1;
        }
        auto make = (void *(*)(size_t))dlsym(module, "make");
        std::vector<void *> blocks;
        for (int i = 0; i < 50; i++)
            blocks.push_back(make(100 + i));
        for (void *block : blocks) {
            total += *(char *)block;
            free(block);
        }
        dlclose(module);
    }
    printf("total %ld\n", total);
    int caught = 0;
    for (int i = 0; i < 1000; i++)
        try {
            thrower(i % 20);
        } catch (const std::exception &error) {
            caught += (int)strlen(error.what()) > 100;
        }
    printf("caught %d\n", caught);
    for (int i = 0; i < 100; i++)
        if (setjmp(back) == 0)
            jumper(i % 10);
    std::thread([] {
        (void)&of_thread;
        std::string text(1000, 't');
        printf("%zu\n", text.size());
    }).join();
    return 0;
}
