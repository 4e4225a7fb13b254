// The pointers in place of `operator delete`; see frees.c. In a separate file, so that a C program needs no C++
// library.
#include <new>

#include "frees.h"

namespace {

using Delete = void (*)(void *);
using SizedDelete = void (*)(void *, std::size_t);

void plain_delete(void *block) { ::operator delete(block); }
void plain_delete_array(void *block) { ::operator delete[](block); }
void plain_delete_sized(void *block, std::size_t bytes) { ::operator delete(block, bytes); }
void plain_delete_array_sized(void *block, std::size_t bytes) { ::operator delete[](block, bytes); }

// The runtime's function takes no size; an argument more than it reads is harmless in the calling conventions
// of x86-64 and aarch64.
template <typename Function> Function who_frees(Function own) {
    return reinterpret_cast<Function>(isotherm_who_frees(reinterpret_cast<void *>(own)));
}

}  // namespace

extern "C" {

extern Delete delete_pointer ISOTHERM_FREE_POINTER("delete");
extern Delete delete_array_pointer ISOTHERM_FREE_POINTER("delete_array");
extern SizedDelete delete_sized_pointer ISOTHERM_FREE_POINTER("delete_sized");
extern SizedDelete delete_array_sized_pointer ISOTHERM_FREE_POINTER("delete_array_sized");
Delete delete_pointer = plain_delete;
Delete delete_array_pointer = plain_delete_array;
SizedDelete delete_sized_pointer = plain_delete_sized;
SizedDelete delete_array_sized_pointer = plain_delete_array_sized;

}  // extern "C"

namespace {

__attribute__((constructor)) void ask() {
    delete_pointer = who_frees<Delete>(&::operator delete);
    delete_array_pointer = who_frees<Delete>(&::operator delete[]);
    delete_sized_pointer = who_frees<SizedDelete>(&::operator delete);
    delete_array_sized_pointer = who_frees<SizedDelete>(&::operator delete[]);
}

}  // namespace
