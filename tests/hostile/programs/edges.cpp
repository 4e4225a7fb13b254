// The corners of the allocation functions: zero, huge, overflowing, misaligned, null.
#include <malloc.h>

#include "check.hpp"

namespace {

const char* kind(const void* pointer) { return pointer == nullptr ? "null" : "memory"; }

void* hidden_null() { return keep(static_cast<void*>(nullptr)); }

volatile size_t zero = 0;
volatile size_t half = SIZE_MAX / 2;
volatile size_t all = SIZE_MAX;

void show(const char* what, void* pointer) {
  const int error = errno;
  std::printf("%s: %s, errno %d\n", what, kind(pointer), error);
  errno = 0;
}

void sizes_of_nothing() {
  void* a = std::malloc(zero);
  void* b = std::malloc(zero);
  std::printf("malloc(0): %s, two differ: %d\n", kind(a), a != b);
  std::free(a);
  std::free(b);
  void* c = std::calloc(zero, 8);
  void* d = std::calloc(8, zero);
  std::printf("calloc: %s %s\n", kind(c), kind(d));
  std::free(c);
  std::free(d);
  std::free(hidden_null());
  std::printf("usable size of null: %zu\n", malloc_usable_size(hidden_null()));
}

void too_much() {
  errno = 0;
  show("malloc of half", std::malloc(half));
  show("malloc of all", std::malloc(all));
  show("malloc of all but a page", std::malloc(all - 4096));
  show("calloc overflowing", std::calloc(half, 3));
  show("calloc just overflowing", std::calloc(all / 16 + 1, 16));
  show("calloc of half", std::calloc(half, 1));
  show("memalign of half", memalign(64, half));
  show("valloc of half", valloc(half));
  show("pvalloc of all", pvalloc(all));
  show("aligned_alloc of half", aligned_alloc(4096, half));
  void* kept = std::malloc(100);
  fill_pattern(kept, 100, 1);
  show("realloc to half", std::realloc(kept, half));
  show("reallocarray overflowing", reallocarray(kept, half, 4));
  std::printf("still there: %d\n", has_pattern(kept, 100, 1));
  std::free(kept);
}

void reallocations() {
  void* fresh = std::realloc(hidden_null(), 50);
  std::printf("realloc of null: %s\n", kind(fresh));
  fill_pattern(fresh, 50, 2);
  size_t old = 50;
  const size_t steps[] = {51, 49, 1, 1000, 999, 5000, 4096, 70000, 300000, 5 << 20, 9 << 20, 40 << 20, 3 << 20, 100, 8, 1 << 20};
  for (const size_t size : steps) {
    fresh = std::realloc(fresh, size);
    CHECK(fresh != nullptr && has_pattern(fresh, old < size ? old : size, 2));
    CHECK(malloc_usable_size(fresh) >= size);
    fill_pattern(fresh, size, 2);
    old = size;
  }
  errno = 0;
  void* gone = std::realloc(fresh, zero);
  std::printf("realloc to 0: %s, errno %d\n", kind(gone), errno);
  std::free(gone);
  void* array = reallocarray(hidden_null(), 10, 20);
  std::printf("reallocarray of null: %s\n", kind(array));
  std::free(array);
  void* nothing = std::realloc(hidden_null(), zero);
  std::printf("realloc of null to 0: %s\n", kind(nothing));
  std::free(nothing);
}

void alignment_errors() {
  void* untouched = const_cast<size_t*>(&zero);
  void* const before = untouched;
  const size_t wrong[] = {0, 1, 3, 4, 7, 12, 24, 100};
  for (const size_t alignment : wrong) {
    errno = 0;
    const int status = posix_memalign(&untouched, alignment, 64);
    std::printf("posix_memalign %zu: %d, untouched %d, errno %d\n", alignment, status,
                untouched == before, errno);
  }
  const int status = posix_memalign(&untouched, 64, half);
  std::printf("posix_memalign of half: %d, untouched %d\n", status, untouched == before);
  CHECK(posix_memalign(&untouched, 8, zero) == 0);
  std::printf("posix_memalign of 0: %s\n", kind(untouched));
  std::free(untouched);
  // A size that is no multiple of the alignment is accepted by glibc.
  void* odd = aligned_alloc(64, 65);
  std::printf("aligned_alloc(64, 65): %s\n", kind(odd));
  std::free(odd);
  void* page = pvalloc(1);
  std::printf("pvalloc(1): %s, a whole page: %d\n", kind(page), malloc_usable_size(page) >= 4096);
  std::free(page);
}

void errno_stays() {
  for (size_t size = 1; size < (64 << 20); size = size * 2 + 1) {
    errno = 1234;
    void* block = keep(std::malloc(size));
    CHECK(errno == 1234);
    block = std::realloc(block, size * 2);
    CHECK(block != nullptr && errno == 1234);
    std::free(block);
    CHECK(errno == 1234);
    std::free(keep(std::calloc(size, 1)));
    CHECK(errno == 1234);
    std::free(keep(aligned_alloc(4096, size)));
    CHECK(errno == 1234);
  }
  std::printf("errno stays as it was\n");
}

}  // namespace

int main() {
  sizes_of_nothing();
  too_much();
  reallocations();
  alignment_errors();
  errno_stays();
  malloc_trim(0);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  std::printf("done\n");
}
