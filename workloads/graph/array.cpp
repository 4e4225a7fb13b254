#include "array.hpp"

#include <isotherm.h>

#include <new>

void* allocate_named(const char* name, uint64_t count, size_t value_bytes) {
  size_t bytes = 0;
  void* memory = nullptr;
  if (!__builtin_mul_overflow(count, value_bytes, &bytes)) memory = isotherm_alloc(name, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void free_named(void* memory) { isotherm_free(memory); }
