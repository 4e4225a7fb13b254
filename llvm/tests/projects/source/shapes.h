#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The sum of `count` numbers that a library in C++ keeps. */
long shapes_sum(int count);

#ifdef __cplusplus
}
#endif
