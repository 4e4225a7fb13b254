// Uses all of isotherm.hpp and misuses it. Ends with status 0 where everything holds that must: without a runtime, under the
// stand-in (double.c), under the runtime.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include "isotherm.hpp"

#define MUST(condition)                                                            \
    do {                                                                           \
        if (!(condition)) {                                                        \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                          \
        }                                                                          \
    } while (false)

using isotherm::status;

static_assert(!std::is_copy_constructible_v<isotherm::object> && !std::is_copy_assignable_v<isotherm::object>);
static_assert(!std::is_copy_constructible_v<isotherm::array<int>> && !std::is_copy_assignable_v<isotherm::array<int>>);
static_assert(!std::is_copy_constructible_v<isotherm::registration>);
static_assert(!std::is_move_constructible_v<isotherm::profile>);

static bool absent() { return isotherm::version() == 0; }
static bool under_stand_in() { return std::getenv("DOUBLE_LOG") != nullptr; }

/// Throws in the constructor of its third instance.
struct Third {
    static inline int alive = 0;
    Third() {
        if (alive == 2)
            throw std::runtime_error("third");
        alive++;
    }
    ~Third() { alive--; }
};

template <class Error, class Action> static bool throws(Action action) {
    try {
        action();
    } catch (const Error &) {
        return true;
    }
    return false;
}

static void memory_has_one_owner() {
    isotherm::array<double> ranks("ranks", 1000);
    MUST(ranks.size() == 1000 && ranks[0] == 0 && ranks[999] == 0);
    ranks[7] = 7;
    isotherm::array<double> moved = std::move(ranks);
    MUST(ranks.empty() && ranks.data() == nullptr && moved.size() == 1000 && moved[7] == 7);
    isotherm::array<double> other("other", 10, isotherm::uninitialized);
    other = std::move(moved);
    MUST(moved.empty() && other.size() == 1000 && other[7] == 7);
    isotherm::array<double> &self = other;
    other = std::move(self);
    MUST(other.size() == 1000 && other[7] == 7);
    isotherm::object bytes("bytes", 100, 4096);
    MUST(bytes && bytes.size() == 100 && reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096 == 0);
    void *given = bytes.release();
    MUST(!bytes && bytes.size() == 0);
    isotherm_free(given);
    isotherm::array<int> nothing("nothing", 0);
    MUST(nothing.empty() && nothing.begin() == nothing.end());
    MUST(throws<std::runtime_error>([] { isotherm::array<Third>("thirds", 5); }));
    MUST(Third::alive == 0);
    MUST(throws<std::bad_alloc>([] { isotherm::array<double>("large", SIZE_MAX / 4); }));
    for (std::size_t alignment : {1, 4096})
        MUST(throws<std::bad_alloc>([&] { isotherm::object("large", std::size_t(1) << 60, alignment); }));
    MUST(throws<std::bad_alloc>([] { isotherm::object("large", SIZE_MAX, 64); }));
}

static void containers_allocate_by_name() {
    std::vector<long, isotherm::allocator<long>> first(isotherm::allocator<long>("first")), second(isotherm::allocator<long>("second"));
    for (long i = 0; i < 1000; i++)
        first.push_back(i);
    auto copy = first;
    MUST(copy == first && std::string(copy.get_allocator().name().c_str()) == "first");
    second = std::move(first);
    MUST(second == copy && std::string(second.get_allocator().name().c_str()) == "first");
    isotherm::memory_resource nodes("nodes"), others("others");
    MUST(nodes == others && !(nodes == *std::pmr::new_delete_resource()));
    std::pmr::map<int, std::pmr::string> map(&nodes);
    for (int i = 0; i < 100; i++)
        map.emplace(i, "a text that is longer than the object that holds short ones");
    MUST(map.size() == 100);
}

static void names_are_checked() {
    for (std::string bad : {std::string(), std::string(64, 'x'), std::string("line\n"), std::string("a\0b", 3)})
        MUST(throws<std::invalid_argument>([&] { isotherm::object(bad, 8); }));
    isotherm::object longest(std::string(63, 'x'), 8);
    isotherm::object umlaut("gewässer", 8);
}

/// Memory that no allocator gave.
struct Mapping {
    static constexpr std::size_t bytes = 1 << 20;
    char *start = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *data() const { return start; }
    std::size_t size() const { return bytes; }
    ~Mapping() { munmap(start, bytes); }
};

static void a_registration_ends_with_its_scope() {
    Mapping grid;
    {
        isotherm::registration first("grid", grid);
        MUST(first.status() == (absent() ? status::absent : status::ok));
        isotherm::registration part("part of it", grid.data() + 10, 80);
        MUST(part.status() == (absent() ? status::absent : status::overlap));
        isotherm::registration moved = std::move(first);
        MUST(moved.status() == (absent() ? status::absent : status::ok));
        MUST(absent() || first.status() == status::unknown);
        MUST(moved.unregister() == (absent() ? status::absent : status::ok));
        MUST(moved.unregister() == (absent() ? status::absent : status::unknown));
    }
    for (int twice = 0; twice < 2; twice++) {
        isotherm::registration again("grid", grid);
        MUST(again.status() == (absent() ? status::absent : status::ok));
    }
    MUST(isotherm::hint(grid, isotherm::heat::hot) == (absent() ? status::absent : status::ok));
    // Memory of the heap has a name already; static data has no tiers on an emulated machine.
    std::vector<int> numbers(1000);
    isotherm::registration vector("numbers", numbers);
    MUST(vector.status() == (absent() ? status::absent : under_stand_in() ? status::ok : status::overlap));
    static double table[1 << 20];
    isotherm::registration fixed("table", table);
    MUST(fixed.status() == (absent() ? status::absent : status::ok) || fixed.status() == status::not_movable);
}

static void a_status_is_an_error_code() {
    std::error_code code = status::overlap;
    MUST(code && code == status::overlap && code != status::busy && code.category() == isotherm::category());
    MUST(std::string(code.category().name()) == "isotherm" && !code.message().empty());
    MUST(!std::error_code(status::ok) && std::string(isotherm::text(status::busy)).size() > 1);
}

static void profiles_are_scopes() {
    isotherm::result done;
    done.samples = 77;
    try {
        isotherm::profile scope(isotherm::options{}, &done);
        throw 1;
    } catch (int) {
    }
    MUST(done.samples == 77);
    {
        isotherm::profile scope;
        MUST(scope.status() != status::ok || isotherm::read_statistics().profiling);
    }
    MUST(!isotherm::read_statistics().profiling);
    isotherm::options wanted;
    wanted.share = 0.5;
    wanted.policy = isotherm::policy::atmem;
    { isotherm::profile scope(wanted, &done); }
    MUST(absent() ? done.status == status::absent && done.samples == 0 : done.status != status::absent);
    MUST(!absent() || done.stayed(isotherm::reason::not_hot) == 0);
    MUST(absent() || !under_stand_in() || (done.capacity_bytes == 9 && done.stayed(isotherm::reason::capacity) == 10));
    MUST(absent() || !under_stand_in() || done.stayed(isotherm::reason::refused) == 17);
    MUST(absent() || !under_stand_in() || done.frequency == 18);
    {
        isotherm::profile scope(isotherm::frequency{2000});
        MUST((scope.status() == status::absent) == absent() && scope.status() != status::invalid);
    }
    {
        isotherm::profile scope(isotherm::frequency{ISOTHERM_FREQUENCY_MAX + 1});
        MUST(scope.status() == (absent() ? status::absent : status::invalid));
    }
    isotherm::object_outcome first = isotherm::read_object(0), second = isotherm::read_object(1);
    MUST(isotherm::read_object(UINT64_MAX).status == (absent() ? status::absent : status::unknown));
    MUST(absent() || !under_stand_in() || (first.status == status::ok && first.name() == "ranks" && second.name().empty()));
    MUST(absent() || !under_stand_in() || (second.bytes == 2 && second.demoted_bytes == 9 && second.stayed(isotherm::reason::refused) == 17));
    wanted.share = 7;
    MUST(isotherm::optimize(wanted).status == (absent() ? status::absent : status::invalid));
}

/// Under the stand-in an optimization takes its time: of two, one finds the other.
static void one_thread_optimizes() {
    std::atomic<int> busy{0}, other{0};
    auto optimize = [&] { (isotherm::optimize().status == status::busy ? busy : other)++; };
    const bool is_slow = !absent() && std::getenv("DOUBLE_SLEEP_MS");
    // On a busy machine the second thread may begin when the first has its answer.
    for (int pair = 0; pair < (is_slow ? 100 : 1) && busy == 0; pair++) {
        other = 0;
        std::thread first(optimize), second(optimize);
        first.join();
        second.join();
        MUST(busy + other == 2 && other >= 1);
    }
    MUST(!is_slow || busy == 1);
}

int main() {
    memory_has_one_owner();
    containers_allocate_by_name();
    names_are_checked();
    a_registration_ends_with_its_scope();
    a_status_is_an_error_code();
    profiles_are_scopes();
    one_thread_optimizes();
}
