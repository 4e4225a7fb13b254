// The frame of a coroutine is allocated by an operator new that is not in the source; its site is the coroutine.
// RUN: %cxx -std=c++20 -O0 %s | FileCheck %s
// RUN: %cxx -std=c++20 -O2 %s | FileCheck %s --check-prefix=OPTIMISED
#include <coroutine>

struct task {
    struct promise_type {
        task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};

// CHECK-LABEL: define {{.*}}@_Z7counterPi(
// CHECK: @isotherm_new(i64 noundef {{.*}}, ptr @isotherm_site.
// OPTIMISED-LABEL: define {{.*}}@_Z7counterPi(
// OPTIMISED: @isotherm_new(i64 noundef {{[0-9]+}}, ptr {{.*}}@isotherm_site.
task counter(int *n) {
    ++*n;
    co_await std::suspend_always();
    ++*n;
}
