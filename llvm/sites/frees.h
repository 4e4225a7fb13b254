// The pointers to the functions that free this module's blocks.
#ifndef ISOTHERM_FREES_H
#define ISOTHERM_FREES_H

#include "isotherm_free.h"

#ifdef __cplusplus
extern "C" {
#endif

// The runtime's answer, or `own` where there is no runtime or it declines.
__attribute__((visibility("hidden"))) void *isotherm_who_frees(void *own);

#ifdef __cplusplus
}
#endif

// A pointer that the pass finds by its symbol.
#define ISOTHERM_FREE_POINTER(function) \
    __asm__(ISOTHERM_FREE_SYMBOL(function)) __attribute__((visibility("hidden")))

#endif
