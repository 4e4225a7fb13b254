// The arrays of the program: from `new[]`, or by name from Isotherm's interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

/// Whether arrays are allocated by name (`--optimize`). Set before the first array is made.
inline bool arrays_have_names = false;

/// Memory for `count` values that profiles call by this name; without Isotherm's runtime, memory
/// from `malloc`. Throws std::bad_alloc where there is none.
void* allocate_named(const char* name, uint64_t count, size_t value_bytes);
void free_named(void* memory);

struct FreeArray {
  template <typename Value>
  void operator()(Value* values) const {
    if (arrays_have_names) {
      free_named(values);
    } else {
      delete[] values;
    }
  }
};

/// Owns an array made by NEW_ARRAY.
template <typename Value>
using Array = std::unique_ptr<Value[], FreeArray>;

/// An array of `count` values of a type. A macro, so that `new[]` is called by the function, and on
/// the line, that makes the array.
#define NEW_ARRAY(type, name, count)                                                 \
  (arrays_have_names ? static_cast<type*>(allocate_named(name, count, sizeof(type))) \
                     : new type[count])

/// Defines a function that makes such an array, which is an allocation site of its own.
#define ARRAY_MAKER(function, type, name) \
  [[gnu::noinline]] type* function(uint64_t count) { return NEW_ARRAY(type, name, count); }
