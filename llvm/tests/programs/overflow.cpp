// A plugin with a planted fault, which the sanitizers must find as soon as it is loaded; otherwise they do not work.
#include <cstdlib>

static int readBehind() {
    volatile int *Block = static_cast<volatile int *>(std::malloc(sizeof(int)));
    return Block[1];
}

int Found = readBehind();
