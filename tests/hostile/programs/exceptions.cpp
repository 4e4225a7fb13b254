// Exceptions across frames that allocate, out of operator new, between threads, nested, and out of
// a constructor; new handlers; nothrow.
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

struct Thrower {
  explicit Thrower(int n) : data(new int[static_cast<size_t>(n) + 1]) {
    if (n % 3 == 0) throw std::runtime_error(std::string(static_cast<size_t>(n) % 500, 'e'));
  }
  std::unique_ptr<int[]> data;
  std::string text = std::string(300, 't');
};

[[gnu::noinline]] void nest(int depth, int n) {
  const std::vector<char> local(static_cast<size_t>(depth) * 37 + 1);
  if (depth == 0) {
    const auto made = std::make_unique<Thrower>(n);
    throw n;
  }
  try {
    nest(depth - 1, n);
  } catch (const std::runtime_error& error) {
    if (depth % 5 == 0) std::throw_with_nested(std::logic_error(error.what() + std::string("+")));
    throw;
  }
}

int count_caught(int count) {
  int runtime = 0;
  int logic = 0;
  int number = 0;
  for (int i = 0; i < count; ++i) {
    try {
      nest(i % 20, i);
    } catch (const std::runtime_error&) {
      ++runtime;
    } catch (const std::logic_error&) {
      ++logic;
    } catch (int) {
      ++number;
    }
  }
  return runtime * 1000000 + logic * 1000 + number;
}

int handler_calls = 0;
void new_handler() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

template <typename Call>
const char* outcome(Call call) {
  try {
    return call() == nullptr ? "null" : "memory";
  } catch (const std::bad_array_new_length&) {
    return "bad_array_new_length";
  } catch (const std::bad_alloc&) {
    return "bad_alloc";
  }
}

}  // namespace

int main() {
  std::printf("caught %d\n", count_caught(600));
  std::vector<std::future<int>> futures;
  for (int i = 0; i < 4; ++i) futures.push_back(std::async(std::launch::async, count_caught, 300));
  for (auto& future : futures) std::printf("thread caught %d\n", future.get());
  auto thrown = std::async(std::launch::async, []() -> int { throw std::out_of_range("far away"); });
  try {
    thrown.get();
  } catch (const std::out_of_range& error) {
    std::printf("across threads: %s\n", error.what());
  }

  volatile size_t huge = SIZE_MAX / 2;
  std::printf("new of half the address space: %s\n", outcome([&] { return ::operator new(huge); }));
  std::printf("nothrow: %s\n", outcome([&] { return ::operator new(huge, std::nothrow); }));
  std::printf("aligned: %s\n",
              outcome([&] { return ::operator new(huge, std::align_val_t{4096}); }));
  std::printf("aligned nothrow: %s\n", outcome([&] {
                return ::operator new(huge, std::align_val_t{4096}, std::nothrow);
              }));
  volatile long minus = -1;
  std::printf("array of -1: %s\n", outcome([&] { return new int[static_cast<size_t>(minus)]; }));
  std::set_new_handler(new_handler);
  std::printf("with a handler: %s\n", outcome([&] { return ::operator new(huge); }));
  std::printf("handler called %d times\n", handler_calls);
}
