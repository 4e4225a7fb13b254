// Allocation at each of 60,000 frames, so that one call runs under 60,000 stack pointers; a broken
// frame chain; and hand-written frames that no table describes.
#include <vector>

#include "check.hpp"

namespace {

struct Node {
  Node* next;
  unsigned number;
};

[[gnu::noinline]] Node* build(unsigned depth) {
  auto* node = static_cast<Node*>(std::malloc(sizeof(Node) + depth % 100));
  CHECK(node != nullptr);
  node->number = depth;
  node->next = depth == 0 ? nullptr : build(depth - 1);
  return node;
}

#if defined(__x86_64__)
// Calls malloc with a frame pointer that points nowhere, as code without frame pointers may.
extern "C" void* allocate_with_wild_frame_pointer(size_t size);
asm(R"(
.text
.type allocate_with_wild_frame_pointer, @function
allocate_with_wild_frame_pointer:
  push %rbp
  mov $0x1234567, %rbp
  call malloc@PLT
  pop %rbp
  ret
.size allocate_with_wild_frame_pointer, .-allocate_with_wild_frame_pointer
)");
#else
void* allocate_with_wild_frame_pointer(size_t size) { return std::malloc(size); }
#endif

}  // namespace

int main() {
  for (int round = 0; round < 3; ++round) {
    Node* list = build(60000);
    unsigned long sum = 0;
    while (list != nullptr) {
      Node* next = list->next;
      sum += list->number;
      std::free(list);
      list = next;
    }
    std::printf("sum %lu\n", sum);
  }
  for (size_t i = 0; i < 10000; ++i) std::free(allocate_with_wild_frame_pointer(i * 10));
  std::printf("wild frame pointers\n");
}
