// The rules of C++ for operator new hold with sites: exceptions, the new-handler, constructors
// that throw, alignment.
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

struct alignas(128) Wide { char bytes[128]; };

static int living = 0;
struct Throwing {
    Throwing() { throw 3; }
    ~Throwing() { --living; }
};

static int handled = 0;
static void handler() {
    if (++handled == 2)
        std::set_new_handler(nullptr);
}

// Larger than any address space, and not known to the compiler.
static volatile std::size_t too_much = SIZE_MAX / 4;

// Unknown to the compiler, so that it cannot remove the allocation.
static char *volatile seen;

int main() {
    auto *wide = new Wide;
    auto *array = new (std::nothrow) Wide[3];
    std::printf("aligned %d\n", reinterpret_cast<std::uintptr_t>(wide) % 128 == 0 &&
                                    reinterpret_cast<std::uintptr_t>(array) % 128 == 0);
    delete wide;
    delete[] array;
    try {
        new Throwing;
    } catch (int number) {
        std::printf("constructor threw %d\n", number);
    }
    std::set_new_handler(handler);
    try {
        seen = new char[too_much];
    } catch (const std::bad_alloc &) {
        std::printf("bad_alloc after %d calls of the handler\n", handled);
    }
    seen = new (std::nothrow) char[too_much];
    std::printf("nothrow %d\n", seen == nullptr);
    std::vector<std::string> texts(100, std::string(100, 'x'));
    std::printf("texts %zu\n", texts.size());
}
