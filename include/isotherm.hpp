// Isotherm's interface for C++17 programs: names for data, profiles of phases, placement on request, with the lifetimes
// of C++. Header only, on isotherm.h: without Isotherm's runtime a program that uses it runs as it is, memory comes from
// `aligned_alloc`, and every function that returns a status returns `status::absent`.
//
// Allocations throw std::bad_alloc, names that profiles cannot show throw std::invalid_argument, and nothing else throws:
// a placement that fails leaves a program that works. A status converts to std::error_code; `status::ok` is its zero.
#ifndef ISOTHERM_HPP
#define ISOTHERM_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "isotherm.h"

namespace isotherm {

/// `enum isotherm_status`.
enum class status : int {
    ok = ISOTHERM_OK,
    absent = ISOTHERM_ABSENT,
    no_observer = ISOTHERM_NO_OBSERVER,
    no_samples = ISOTHERM_NO_SAMPLES,
    busy = ISOTHERM_BUSY,
    invalid = ISOTHERM_INVALID,
    overlap = ISOTHERM_OVERLAP,
    unknown = ISOTHERM_UNKNOWN,
    not_movable = ISOTHERM_NOT_MOVABLE,
    no_room = ISOTHERM_NO_ROOM,
    failed = ISOTHERM_FAILED,
};

/// `enum isotherm_hint`.
enum class heat : int {
    hot = ISOTHERM_HOT,
    cold = ISOTHERM_COLD,
    streaming = ISOTHERM_STREAMING,
    unknown = ISOTHERM_UNKNOWN_HEAT,
};

/// `enum isotherm_policy`.
enum class policy : std::uint32_t {
    of_the_run = ISOTHERM_POLICY_DEFAULT,
    atmem = ISOTHERM_POLICY_ATMEM,
    thermos = ISOTHERM_POLICY_THERMOS,
};

/// `enum isotherm_reason`.
enum class reason : int {
    capacity = ISOTHERM_STAYED_CAPACITY,
    not_hot = ISOTHERM_STAYED_NOT_HOT,
    not_touched = ISOTHERM_STAYED_NOT_TOUCHED,
    not_movable = ISOTHERM_STAYED_NOT_MOVABLE,
    no_room = ISOTHERM_STAYED_NO_ROOM,
    in_use = ISOTHERM_STAYED_IN_USE,
    shared = ISOTHERM_STAYED_SHARED,
    refused = ISOTHERM_STAYED_REFUSED,
};

/// One sentence for a status, or for a reason.
inline const char *text(status value) noexcept { return isotherm_status_text(static_cast<int>(value)); }
inline const char *text(reason value) noexcept { return isotherm_reason_text(static_cast<int>(value)); }

/// The category of the error codes that statuses convert to.
inline const std::error_category &category() noexcept {
    struct statuses final : std::error_category {
        const char *name() const noexcept override { return "isotherm"; }
        std::string message(int value) const override { return isotherm_status_text(value); }
    };
    static const statuses instance;
    return instance;
}

inline std::error_code make_error_code(status value) noexcept { return {static_cast<int>(value), category()}; }

/// Version of the runtime's interface; 0 where none is loaded that serves this header.
inline int version() noexcept { return isotherm_version(); }

/// The name of an object: 1 to 63 bytes of text without control characters.
class object_name {
public:
    object_name(std::string_view text) {
        if (text.empty() || text.size() >= sizeof text_)
            throw std::invalid_argument("isotherm: a name has 1 to 63 bytes");
        for (unsigned char byte : text)
            if (byte < 0x20 || byte == 0x7f)
                throw std::invalid_argument("isotherm: a name has no control characters");
        std::memcpy(text_, text.data(), text.size());
    }
    object_name(const char *text) : object_name(std::string_view(text)) {}
    object_name(const std::string &text) : object_name(std::string_view(text)) {}

    const char *c_str() const noexcept { return text_; }

private:
    char text_[64] = {};
};

/// The alignment of all memory that `malloc` gives.
inline constexpr std::size_t least_alignment = alignof(std::max_align_t);

/// Bytes under a name; throws std::bad_alloc. Freed by `isotherm_free`.
inline void *allocate(const object_name &name, std::size_t bytes, std::size_t alignment = least_alignment) {
    void *block = nullptr;
    if (alignment <= least_alignment)
        block = isotherm_alloc(name.c_str(), std::max<std::size_t>(bytes, 1));
    else if (bytes <= std::numeric_limits<std::size_t>::max() - alignment)
        // C11 wants a multiple of the alignment, and AddressSanitizer insists.
        block = isotherm_alloc_aligned(name.c_str(), std::max<std::size_t>((bytes + alignment - 1) / alignment, 1) * alignment, alignment);
    if (!block)
        throw std::bad_alloc();
    return block;
}

/// The bytes of `count` elements; throws std::bad_array_new_length where they are more than an object can have.
template <class T> std::size_t bytes_of(std::size_t count) {
    if (count > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(T))
        throw std::bad_array_new_length();
    return count * sizeof(T);
}

/// Owns bytes that were allocated under a name.
class object {
public:
    object() noexcept = default;
    object(const object_name &name, std::size_t bytes, std::size_t alignment = least_alignment)
        : data_(allocate(name, bytes, alignment)), size_(bytes) {}
    object(object &&other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    object &operator=(object &&other) noexcept {
        object taken(std::move(other));
        std::swap(data_, taken.data_);
        std::swap(size_, taken.size_);
        return *this;
    }
    ~object() {
        if (data_)
            isotherm_free(data_);
    }

    void *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }
    /// Gives the bytes away: the caller frees them by `isotherm_free` or `free`.
    void *release() noexcept {
        size_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    void *data_ = nullptr;
    std::size_t size_ = 0;
};

/// Leaves the elements of an `array` as they are, for programs whose threads write them first.
struct uninitialized_t {};
inline constexpr uninitialized_t uninitialized{};

/// Owns an array that was allocated under a name. Its elements are value-initialized: numbers are zero.
template <class T> class array {
public:
    using value_type = T;
    using iterator = T *;
    using const_iterator = const T *;

    array() noexcept = default;
    array(const object_name &name, std::size_t size) : memory_(name, bytes_of<T>(size), alignof(T)) {
        std::uninitialized_value_construct_n(data(), size);
        size_ = size;
    }
    array(const object_name &name, std::size_t size, uninitialized_t) : memory_(name, bytes_of<T>(size), alignof(T)), size_(size) {
        static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>,
                      "only trivial elements can be left uninitialized");
    }
    array(array &&other) noexcept : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
    array &operator=(array &&other) noexcept {
        array taken(std::move(other));
        std::swap(memory_, taken.memory_);
        std::swap(size_, taken.size_);
        return *this;
    }
    ~array() { std::destroy_n(data(), size_); }

    T *data() noexcept { return static_cast<T *>(memory_.data()); }
    const T *data() const noexcept { return static_cast<const T *>(memory_.data()); }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T &operator[](std::size_t index) noexcept { return data()[index]; }
    const T &operator[](std::size_t index) const noexcept { return data()[index]; }
    T *begin() noexcept { return data(); }
    T *end() noexcept { return data() + size_; }
    const T *begin() const noexcept { return data(); }
    const T *end() const noexcept { return data() + size_; }

private:
    object memory_;
    std::size_t size_ = 0;
};

/// Allocates the elements of containers under a name: `std::vector<double, isotherm::allocator<double>>`. The name moves
/// with the elements; a copy of a container has the same name.
template <class T> class allocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    explicit allocator(const object_name &name) noexcept : name_(name) {}
    template <class U> allocator(const allocator<U> &other) noexcept : name_(other.name()) {}

    T *allocate(std::size_t count) { return static_cast<T *>(isotherm::allocate(name_, bytes_of<T>(count), alignof(T))); }
    void deallocate(T *elements, std::size_t) noexcept { isotherm_free(elements); }
    const object_name &name() const noexcept { return name_; }

    template <class U> bool operator==(const allocator<U> &) const noexcept { return true; }
    template <class U> bool operator!=(const allocator<U> &) const noexcept { return false; }

private:
    object_name name_;
};

/// Allocates under a name for the containers of std::pmr.
class memory_resource final : public std::pmr::memory_resource {
public:
    explicit memory_resource(const object_name &name) noexcept : name_(name) {}

private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override { return isotherm::allocate(name_, bytes, alignment); }
    void do_deallocate(void *block, std::size_t, std::size_t) override { isotherm_free(block); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return dynamic_cast<const memory_resource *>(&other) != nullptr;
    }

    object_name name_;
};

/// Names memory that the program owns, from here to the end of the scope: a static array, a mapping. What `malloc` gives has
/// the name of its allocation: `overlap`. End a registration before the memory is given back.
class registration {
public:
    registration(const object_name &name, void *address, std::size_t bytes) noexcept
        : address_(address), status_(isotherm::status(isotherm_register(name.c_str(), address, bytes))) {}
    /// The elements of an array, a std::array, a container in memory of the program's.
    template <class Container>
    registration(const object_name &name, Container &container)
        : registration(name, std::data(container), std::size(container) * sizeof(*std::data(container))) {}
    registration(registration &&other) noexcept
        : address_(other.address_), status_(std::exchange(other.status_, isotherm::status::unknown)) {}
    registration &operator=(registration &&other) noexcept {
        registration taken(std::move(other));
        std::swap(address_, taken.address_);
        std::swap(status_, taken.status_);
        return *this;
    }
    ~registration() { unregister(); }

    /// `ok` while the memory is registered; why it is not, else.
    isotherm::status status() const noexcept { return status_; }
    /// Ends the registration early. A second call returns `unknown`.
    isotherm::status unregister() noexcept {
        if (status_ != isotherm::status::ok)
            return status_;
        status_ = isotherm::status::unknown;
        return isotherm::status(isotherm_unregister(address_));
    }

private:
    void *address_;
    isotherm::status status_;
};

/// Says how hot memory is.
inline status hint(void *address, std::size_t bytes, heat value) noexcept {
    return status(isotherm_hint(address, bytes, static_cast<enum ::isotherm_hint>(value)));
}
template <class Container> status hint(Container &container, heat value) noexcept {
    return hint(std::data(container), std::size(container) * sizeof(*std::data(container)), value);
}

/// What `optimize` is to do.
struct options {
    /// Most bytes of fast memory, in whole pages; ISOTHERM_NO_FAST_BYTES for none, 0: as `share` says.
    std::uint64_t fast_bytes = 0;
    /// Most fast memory, as a share (0 to 1) of the registered and recorded data; 0: the capacity of the run.
    double share = 0;
    isotherm::policy policy = isotherm::policy::of_the_run;
};

/// Samples a second of each thread's processor time that a `profile` is to take.
struct frequency {
    std::uint32_t hz;
};

/// What `optimize` did.
struct result {
    isotherm::status status = isotherm::status::absent;
    std::uint64_t promoted_bytes = 0;
    std::uint64_t demoted_bytes = 0;
    std::uint64_t placed_bytes = 0;
    std::uint64_t failed_bytes = 0;
    std::uint64_t selected_bytes = 0;
    std::uint64_t samples = 0;
    std::chrono::nanoseconds selection{};
    std::chrono::nanoseconds migration{};
    /// Bytes of fast memory that the choice may use.
    std::uint64_t capacity_bytes = 0;
    /// Bytes in slow memory, or not moved, by `reason`.
    std::array<std::uint64_t, ISOTHERM_REASONS> stayed_bytes{};
    /// Samples a second of each thread's processor time; 0 where no timer sampled.
    std::uint64_t frequency = 0;

    /// Bytes that stay for this reason.
    std::uint64_t stayed(reason why) const noexcept { return stayed_bytes[static_cast<std::size_t>(why)]; }
};

/// What the last optimization did to a data object (`struct isotherm_object`).
struct object_outcome {
    isotherm::status status = isotherm::status::absent;
    void *address = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t samples = 0;
    std::uint64_t resident_bytes = 0;
    std::uint64_t fast_bytes = 0;
    std::uint64_t selected_bytes = 0;
    std::uint64_t placed_bytes = 0;
    std::uint64_t promoted_bytes = 0;
    std::uint64_t demoted_bytes = 0;
    /// By `reason`.
    std::array<std::uint64_t, ISOTHERM_REASONS> stayed_bytes{};
    std::array<char, sizeof isotherm_object::name> text{};

    /// The program's name for it; empty where it gave none. Lives as long as the outcome.
    std::string_view name() const noexcept { return text.data(); }
    std::uint64_t stayed(reason why) const noexcept { return stayed_bytes[static_cast<std::size_t>(why)]; }
};

/// The outcome of the object with this number, from 0 on by address; the status is `unknown` past the last.
inline object_outcome read_object(std::uint64_t number) noexcept {
    isotherm_object read{};
    read.size = sizeof read;
    object_outcome answer;
    answer.status = status(isotherm_read_object(number, &read));
    answer.address = reinterpret_cast<void *>(static_cast<std::uintptr_t>(read.address));
    answer.bytes = read.bytes;
    answer.samples = read.samples;
    answer.resident_bytes = read.resident_bytes;
    answer.fast_bytes = read.fast_bytes;
    answer.selected_bytes = read.selected_bytes;
    answer.placed_bytes = read.placed_bytes;
    answer.promoted_bytes = read.promoted_bytes;
    answer.demoted_bytes = read.demoted_bytes;
    std::copy(std::begin(read.stayed_bytes), std::end(read.stayed_bytes), answer.stayed_bytes.begin());
    std::copy(std::begin(read.name), std::end(read.name), answer.text.begin());
    return answer;
}

/// Chooses from the last profile what is to be in fast memory, and moves it.
inline result optimize(const options &wanted = {}) noexcept {
    isotherm_options given{};
    given.size = sizeof given;
    given.policy = static_cast<std::uint32_t>(wanted.policy);
    given.fast_bytes = wanted.fast_bytes;
    given.share = wanted.share;
    isotherm_result done{};
    done.size = sizeof done;
    result answer;
    answer.status = status(isotherm_optimize(&given, &done));
    answer.promoted_bytes = done.promoted_bytes;
    answer.demoted_bytes = done.demoted_bytes;
    answer.placed_bytes = done.placed_bytes;
    answer.failed_bytes = done.failed_bytes;
    answer.selected_bytes = done.selected_bytes;
    answer.samples = done.samples;
    answer.selection = std::chrono::nanoseconds(done.selection_ns);
    answer.migration = std::chrono::nanoseconds(done.migration_ns);
    answer.capacity_bytes = done.capacity_bytes;
    std::copy(std::begin(done.stayed_bytes), std::end(done.stayed_bytes), answer.stayed_bytes.begin());
    answer.frequency = done.frequency;
    return answer;
}

/// Profiles the process from here to the end of the scope, and optimizes there if it was given options, unless the scope
/// ends by an exception.
class profile {
public:
    profile() noexcept : status_(isotherm_profile_start()) {}
    /// Sampled so often, as `isotherm_profile_start_at` says.
    explicit profile(isotherm::frequency often) noexcept : status_(isotherm_profile_start_at(often.hz)) {}
    explicit profile(const options &wanted, result *answer = nullptr) noexcept : profile() {
        optimizes_ = true;
        wanted_ = wanted;
        answer_ = answer;
    }
    profile(const profile &) = delete;
    profile &operator=(const profile &) = delete;
    ~profile() {
        isotherm_profile_stop();
        if (!optimizes_ || std::uncaught_exceptions() > exceptions_)
            return;
        result answer = optimize(wanted_);
        if (answer_)
            *answer_ = answer;
    }

    /// Of the start.
    isotherm::status status() const noexcept { return isotherm::status(status_); }

private:
    int status_;
    int exceptions_ = std::uncaught_exceptions();
    bool optimizes_ = false;
    options wanted_;
    result *answer_ = nullptr;
};

/// What the runtime knows of the process.
struct statistics {
    isotherm::status status = isotherm::status::absent;
    bool profiling = false;
    std::uint64_t objects = 0;
    std::uint64_t object_bytes = 0;
    std::uint64_t fast_bytes = 0;
    std::uint64_t slow_bytes = 0;
    std::uint64_t optimizations = 0;
    std::uint64_t promoted_bytes = 0;
    std::uint64_t demoted_bytes = 0;
};

inline statistics read_statistics() noexcept {
    isotherm_statistics read{};
    read.size = sizeof read;
    statistics answer;
    answer.status = status(isotherm_read_statistics(&read));
    answer.profiling = read.profiling != 0;
    answer.objects = read.objects;
    answer.object_bytes = read.object_bytes;
    answer.fast_bytes = read.fast_bytes;
    answer.slow_bytes = read.slow_bytes;
    answer.optimizations = read.optimizations;
    answer.promoted_bytes = read.promoted_bytes;
    answer.demoted_bytes = read.demoted_bytes;
    return answer;
}

} // namespace isotherm

template <> struct std::is_error_code_enum<isotherm::status> : std::true_type {};

#endif
