// A program with its own operator new keeps it: its blocks must come from there.
#include <cstdio>
#include <cstdlib>
#include <new>

static char pool[1 << 16];
static std::size_t used = 0;

void *operator new(std::size_t bytes) {
    used += (bytes + 15) / 16 * 16;
    if (used > sizeof pool)
        throw std::bad_alloc();
    return pool + used - (bytes + 15) / 16 * 16;
}
void operator delete(void *block) noexcept {
    bool ours = block >= pool && block < pool + sizeof pool;
    std::printf("%s\n", ours ? "from the program's pool" : "FROM ELSEWHERE");
}
void operator delete(void *block, std::size_t) noexcept { operator delete(block); }

struct Thing { int number; Thing(); };
__attribute__((noinline)) Thing::Thing() : number(7) {}

int main() {
    Thing *thing = new Thing;
    delete thing;
}
