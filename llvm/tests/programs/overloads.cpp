// Two functions of one name, which allocate in the same line of each.
#include <cstdio>
#include <cstdlib>

__attribute__((noinline)) static char *make(int) {
    return static_cast<char *>(malloc(1000));
}

__attribute__((noinline)) static char *make(long) {
    return static_cast<char *>(malloc(1000));
}

int main() {
    char *First = make(7), *Second = make(8L);
    std::printf("done %d\n", First != Second);
    free(First);
    free(Second);
}
