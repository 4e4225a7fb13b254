// Every form of operator new and delete, called directly and by the language, mixed with malloc's
// knowledge of the size; polymorphic memory resources; over-aligned types.
#include <malloc.h>

#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

struct alignas(4096) Page {
  unsigned char bytes[4096];
};

struct Base {
  virtual ~Base() = default;
  int a = 1;
};
struct Derived : Base {
  std::string text = std::string(1000, 'd');
};

void all_forms(size_t size) {
  const std::align_val_t alignment{256};
  ::operator delete(keep(::operator new(size)));
  ::operator delete(keep(::operator new(size)), size);
  ::operator delete[](keep(::operator new[](size)));
  ::operator delete[](keep(::operator new[](size)), size);
  ::operator delete(keep(::operator new(size, std::nothrow)), std::nothrow);
  ::operator delete[](keep(::operator new[](size, std::nothrow)), std::nothrow);
  ::operator delete(keep(::operator new(size, alignment)), alignment);
  ::operator delete(keep(::operator new(size, alignment)), size, alignment);
  ::operator delete[](keep(::operator new[](size, alignment)), alignment);
  ::operator delete[](keep(::operator new[](size, alignment)), size, alignment);
  ::operator delete(keep(::operator new(size, alignment, std::nothrow)), alignment, std::nothrow);
  ::operator delete[](keep(::operator new[](size, alignment, std::nothrow)), alignment, std::nothrow);
  void* block = keep(::operator new(size));
  CHECK(malloc_usable_size(block) >= size);
  fill_pattern(block, size, 1);
  CHECK(has_pattern(block, size, 1));
  ::operator delete(block, size);
  ::operator delete(keep(static_cast<void*>(nullptr)));
  ::operator delete[](keep(static_cast<void*>(nullptr)), size);
}

}  // namespace

int main() {
  for (size_t size = 0; size < 300; ++size) all_forms(size);
  for (size_t size = 300; size < (8 << 20); size = size * 3 / 2) all_forms(size);
  CHECK(keep(::operator new(0)) != nullptr);
  for (int i = 0; i < 1000; ++i) {
    const std::unique_ptr<Base> object(new Derived);
    const std::unique_ptr<Page[]> pages(new Page[3]);
    CHECK(reinterpret_cast<uintptr_t>(pages.get()) % 4096 == 0);
  }
  std::pmr::monotonic_buffer_resource buffer;
  std::pmr::synchronized_pool_resource pool(&buffer);
  std::pmr::map<int, std::pmr::string> table(&pool);
  for (int i = 0; i < 10000; ++i) table.emplace(i, std::pmr::string(static_cast<size_t>(i) % 300, 'p'));
  for (int i = 0; i < 10000; i += 2) table.erase(i);
  std::printf("table of %zu\n", table.size());
  std::vector<std::shared_ptr<std::string>> shared;
  for (int i = 0; i < 50000; ++i) shared.push_back(std::make_shared<std::string>(std::to_string(i)));
  std::printf("last %s\n", shared.back()->c_str());
}
