// The data objects of a workload, by name. Each is allocated where the program names it, so each is an
// allocation site of its own even where no name is known.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

// From Isotherm's runtime, where it is loaded: memory that profiles and plans call by the name.
extern "C" [[gnu::weak]] void* isotherm_alloc(const char* name, size_t bytes);

namespace harness {

constexpr size_t kAlignment = 64;

/// The bytes of `count` values, in whole cache lines. More than there can be is refused as memory that there is not.
inline size_t object_bytes(uint64_t count, uint64_t value_bytes) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, value_bytes, &bytes) || bytes > PTRDIFF_MAX - kAlignment) throw std::bad_alloc();
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Owns the objects, and knows their names and sizes.
class Objects {
 public:
  void* keep(const char* name, size_t bytes, void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    owned_.emplace_back(memory, &std::free);
    listed_.push_back({name, bytes});
    return memory;
  }

  /// One line for each object: `object NAME BYTES`.
  void print() const {
    for (const auto& object : listed_) std::printf("object %s %zu\n", object.name.c_str(), object.bytes);
  }

 private:
  struct Listed {
    std::string name;
    size_t bytes;
  };

  std::vector<std::unique_ptr<void, decltype(&std::free)>> owned_;
  std::vector<Listed> listed_;
};

}  // namespace harness

/// An array of `count` values of a type, owned by `objects`. A macro, so that the call is in the function and on the line that
/// names the object.
#define NAMED_ARRAY(objects, type, name, count)                                                              \
  static_cast<type*>((objects).keep(                                                                         \
      name, harness::object_bytes(count, sizeof(type)),                                                      \
      isotherm_alloc != nullptr ? isotherm_alloc(name, harness::object_bytes(count, sizeof(type)))           \
                                : std::aligned_alloc(harness::kAlignment,                                    \
                                                     harness::object_bytes(count, sizeof(type)))))
