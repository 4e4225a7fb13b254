/* Isotherm's interface for programs: names for data, profiles of phases, placement on request.
 *
 * A program that uses it needs no library to build or to run. Where Isotherm's runtime is not loaded, `isotherm_alloc` is
 * `malloc`, `isotherm_calloc` is `calloc`, and the other functions do nothing and return ISOTHERM_ABSENT. Where it is loaded (`isotherm run`, `isotherm
 * record`), they call the runtime's. C99 or C++98, by GCC or Clang, on Linux; docs/interface.md says how to use it.
 *
 * Every function may be called by any thread. None may be called by a signal handler. All but isotherm_alloc,
 * isotherm_calloc and isotherm_alloc_aligned keep `errno`.
 */
#ifndef ISOTHERM_H
#define ISOTHERM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header. A runtime serves programs with every version of the same hundred, older and newer: each reads and writes the
 * fields of a struct that it knows, by the struct's `size`. To a program with a header of another hundred it says so once, in a line on
 * standard error, and the functions do what they do without a runtime. */
#define ISOTHERM_HEADER_VERSION 103

enum isotherm_status {
    ISOTHERM_OK = 0,
    ISOTHERM_ABSENT = 1,      /* no runtime is loaded, or it is off */
    ISOTHERM_NO_OBSERVER = 2, /* no process observes this one: it was not started by `isotherm run` without a plan, it is a
                                 forked child, or the observer has ended */
    ISOTHERM_NO_SAMPLES = 3,  /* nothing was profiled: nothing is moved */
    ISOTHERM_BUSY = 4,        /* another thread profiles or optimizes */
    ISOTHERM_INVALID = 5,     /* an argument is out of range, memory is not mapped, or a struct has a size that no version has */
    ISOTHERM_OVERLAP = 6,     /* a part of the memory is registered already, or comes from `malloc`, which has names of its own */
    ISOTHERM_UNKNOWN = 7,     /* the address begins no registered object */
    ISOTHERM_NOT_MOVABLE = 8, /* stacks, files and shared memory stay where they are; on an emulated machine also memory outside
                                 the runtime's mappings and the static data of the program as it was started */
    ISOTHERM_NO_ROOM = 9,     /* a table of the runtime is full */
    ISOTHERM_FAILED = 10      /* the kernel refused */
};

enum isotherm_hint {
    ISOTHERM_HOT = 0,          /* into fast memory before everything else */
    ISOTHERM_COLD = 1,         /* into slow memory */
    ISOTHERM_STREAMING = 2,    /* read or written in order: leaves its room to other data */
    ISOTHERM_UNKNOWN_HEAT = 3  /* takes the hint back */
};

enum isotherm_policy {
    ISOTHERM_POLICY_DEFAULT = 0,  /* the policy of the run: ATMem */
    ISOTHERM_POLICY_ATMEM = 1,
    ISOTHERM_POLICY_THERMOS = 2
};

/* Why data is not in fast memory after an optimization, or did not move: a place in `isotherm_result.stayed_bytes`. The
 * first two are data in slow memory that was not chosen, the last four together are `failed_bytes`. */
enum isotherm_reason {
    ISOTHERM_STAYED_CAPACITY = 0,    /* hot, and hotter data takes the fast memory that may be used */
    ISOTHERM_STAYED_NOT_HOT = 1,     /* no samples, or too few, and no hint prove it hot */
    ISOTHERM_STAYED_NOT_TOUCHED = 2, /* has no pages: not touched yet, or freed meanwhile */
    ISOTHERM_STAYED_NOT_MOVABLE = 3, /* a hint calls it hot, and the run does not place it: a stack, a file, shared memory; on an emulated machine
                                        also memory outside the runtime's mappings and static data of the program */
    ISOTHERM_STAYED_NO_ROOM = 4,     /* the memory that it was to enter was full */
    ISOTHERM_STAYED_IN_USE = 5,      /* its pages were in use by the kernel or a device; on an emulated machine, the program did not run */
    ISOTHERM_STAYED_SHARED = 6,      /* shared with another process since a fork */
    ISOTHERM_STAYED_REFUSED = 7,     /* the kernel refused: no permission, or a node that the process may not use */
    ISOTHERM_REASONS = 8
};

/* As `isotherm_options.fast_bytes`, like every limit below a page: nothing is to be fast, and what is fast leaves. Without samples nothing moves by
 * this limit either. */
#define ISOTHERM_NO_FAST_BYTES 1

/* Highest frequency of a profile, in samples a second of each thread's processor time. */
#define ISOTHERM_FREQUENCY_MAX 20000

/* What `isotherm_optimize` is to do. All zero but `size` is the default. */
struct isotherm_options {
    uint32_t size;             /* sizeof(struct isotherm_options) */
    uint32_t policy;           /* an isotherm_policy */
    uint64_t fast_bytes;       /* most bytes of fast memory, in whole pages; 0: as `share` says. More than the run or the machine has is what it has */
    double share;              /* most fast memory, as a share (0 to 1) of the registered and recorded data; 0: the capacity of the run */
};

/* What `isotherm_optimize` did. */
struct isotherm_result {
    uint32_t size;             /* sizeof(struct isotherm_result), set by the caller; returned: the bytes that the runtime wrote */
    uint32_t status;           /* an isotherm_status, as returned */
    uint64_t promoted_bytes;   /* moved to fast memory */
    uint64_t demoted_bytes;    /* moved to slow memory */
    uint64_t placed_bytes;     /* of those chosen for fast memory: were there before */
    uint64_t failed_bytes;     /* could not be moved */
    uint64_t selected_bytes;   /* chosen for fast memory */
    uint64_t samples;          /* on which the choice rests */
    uint64_t selection_ns;     /* time of the choice */
    uint64_t migration_ns;     /* time of the moves */
    /* Since version 102: */
    uint64_t capacity_bytes;   /* of fast memory that the choice may use: the least of the limit of the request, that of the run, and what other
                                  processes leave of the machine's */
    uint64_t stayed_bytes[ISOTHERM_REASONS]; /* by isotherm_reason: in slow memory, or not moved */
    /* Since version 103: */
    uint64_t frequency;        /* samples a second of each thread's processor time, at the end of the profile; 0 where no timer sampled */
};

/* What the last optimization did to one data object, or to the data of a name or an allocation site between its data objects. Since version
 * 103. A data object is memory that the program registered, an allocation of 64 KiB or more, a large mapping, or a static array. */
struct isotherm_object {
    uint32_t size;             /* as isotherm_result.size */
    uint32_t reserved;
    char name[64];             /* of the program's, ended by NUL; empty where it gave none */
    uint64_t address;
    uint64_t bytes;
    uint64_t samples;          /* of the profile, in it */
    uint64_t resident_bytes;   /* that have pages, after the moves */
    uint64_t fast_bytes;       /* of these, in fast memory */
    uint64_t selected_bytes;   /* as those of isotherm_result, in whole pages; a page that two objects share counts for the first */
    uint64_t placed_bytes;
    uint64_t promoted_bytes;
    uint64_t demoted_bytes;
    uint64_t stayed_bytes[ISOTHERM_REASONS];
};

struct isotherm_statistics {
    uint32_t size;             /* as isotherm_result.size */
    uint32_t profiling;        /* 1 while a profile is taken */
    uint64_t objects;          /* registered objects, and names whose allocations live */
    uint64_t object_bytes;     /* their bytes */
    uint64_t fast_bytes;       /* of the process in fast memory, on an emulated machine; else 0 */
    uint64_t slow_bytes;       /* likewise in slow memory */
    uint64_t optimizations;    /* that succeeded */
    uint64_t promoted_bytes;   /* of all of them */
    uint64_t demoted_bytes;
};

/* How the runtime's functions are found.
 *
 * A weak reference to them is not enough: the linker of a program without position-independent code binds it to null for good
 * (GNU ld and LLD do, whatever the options). The C library is linked in any case, so its `dlsym` finds them; on glibc before
 * 2.34 that needs -ldl. In a static program, which can load no runtime, the weak reference to `dlsym` is null. A weak definition
 * in the program would win over the runtime's. `weakref` leaves other uses of `dlsym` in the file as they are. */
typedef void (*isotherm_function_)(void);
static isotherm_function_ isotherm_search_(void *scope, const char *name) __attribute__((weakref("dlsym")));

/* Stands for a function that was not found. */
static inline void isotherm_none_(void) {}

/* Whether the runtime, if one is loaded, serves this header. A runtime before version 102 cannot be asked. */
static inline int isotherm_is_served_(void)
{
    static int known; /* 1: it does, 2: it does not */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!answer) {
        isotherm_function_ serves = isotherm_search_(0 /* RTLD_DEFAULT */, "isotherm_serves_header");
        isotherm_function_ version = isotherm_search_(0, "isotherm_version");
        int is_served = 0;
        if (serves)
            is_served = ((int (*)(int))serves)(ISOTHERM_HEADER_VERSION);
        else if (version)
            is_served = ((int (*)(void))version)() / 100 == ISOTHERM_HEADER_VERSION / 100;
        answer = is_served ? 1 : 2;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 1;
}

/* The function of this name, or null; it is looked up once. */
static inline isotherm_function_ isotherm_find_(isotherm_function_ *known, const char *name)
{
    isotherm_function_ found = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (!found) {
        if (isotherm_search_ && isotherm_is_served_())
            found = isotherm_search_(0, name);
        if (!found)
            found = isotherm_none_;
        __atomic_store_n(known, found, __ATOMIC_RELAXED);
    }
    return found == isotherm_none_ ? 0 : found;
}

/* Version of the runtime's interface; 0 where none is loaded that serves this header. */
static inline int isotherm_version(void)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_version");
    return found ? ((int (*)(void))found)() : 0;
}

/* Allocates an object that profiles and plans call by this name: 1 to 63 bytes of text, without control characters. Another
 * text names nothing, and the object is allocated as by `malloc`. Freed by `isotherm_free` or `free`; `realloc` keeps the
 * name. NULL and errno where there is no memory. */
static inline void *isotherm_alloc(const char *name, size_t bytes)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_alloc");
    return found ? ((void *(*)(const char *, size_t))found)(name, bytes) : malloc(bytes);
}

/* As isotherm_alloc, of `count` times `bytes` bytes that are zero: large objects take no memory until they are written. Since version 101;
 * an object of an older runtime has no name. */
static inline void *isotherm_calloc(const char *name, size_t count, size_t bytes)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_calloc");
    return found ? ((void *(*)(const char *, size_t, size_t))found)(name, count, bytes) : calloc(count, bytes);
}

/* The C library's, which C99 does not declare. */
extern void *isotherm_aligned_alloc_(size_t alignment, size_t bytes) __asm__("aligned_alloc");

/* As isotherm_alloc; the alignment is a power of two, else NULL and EINVAL. */
static inline void *isotherm_alloc_aligned(const char *name, size_t bytes, size_t alignment)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_alloc_aligned");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        errno = EINVAL;
        return 0;
    }
    return found ? ((void *(*)(const char *, size_t, size_t))found)(name, bytes, alignment)
                 : isotherm_aligned_alloc_(alignment, bytes);
}

static inline void isotherm_free(void *object)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_free");
    if (found)
        ((void (*)(void *))found)(object);
    else
        free(object);
}

/* Names memory that the program owns: a mapping, a static array, memory of another allocator. The program unregisters it before
 * it gives the memory back. */
static inline int isotherm_register(const char *name, void *address, size_t bytes)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_register");
    return found ? ((int (*)(const char *, void *, size_t))found)(name, address, bytes) : ISOTHERM_ABSENT;
}

static inline int isotherm_unregister(void *address)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_unregister");
    return found ? ((int (*)(void *))found)(address) : ISOTHERM_ABSENT;
}

/* Begins and ends a profile of this process. A second start begins anew. */
static inline int isotherm_profile_start(void)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_profile_start");
    return found ? ((int (*)(void))found)() : ISOTHERM_ABSENT;
}

/* As isotherm_profile_start, with a timer that samples so often, in samples a second of each thread's processor time: at the lowest of the run's rates
 * (250, 1,000, 2,000, 4,000) that is at least this, else at the highest; at the run's only one where its user gave `--frequency`. 0: as the run
 * chooses. A runtime before version 103 chooses in any case. */
static inline int isotherm_profile_start_at(uint32_t frequency)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_profile_start_at");
    return found ? ((int (*)(uint32_t))found)(frequency) : isotherm_profile_start();
}

static inline int isotherm_profile_stop(void)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_profile_stop");
    return found ? ((int (*)(void))found)() : ISOTHERM_ABSENT;
}

/* Chooses from the last profile what is to be in fast memory, and moves it. Returns when the moves are done; other threads
 * run on meanwhile. `options` and `result` may be NULL. */
static inline int isotherm_optimize(const struct isotherm_options *options, struct isotherm_result *result)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_optimize");
    if (found)
        return ((int (*)(const struct isotherm_options *, struct isotherm_result *))found)(options, result);
    if (result) {
        const struct isotherm_result none = {sizeof none, ISOTHERM_ABSENT, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0};
        *result = none;
    }
    return ISOTHERM_ABSENT;
}

/* Reads what the last optimization did to the data object with this number, from 0 on by address. ISOTHERM_UNKNOWN past the last, and before the first
 * optimization. Of more than 4,096 objects those without a name are left out, the smallest first. */
static inline int isotherm_read_object(uint64_t number, struct isotherm_object *object)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_read_object");
    return found ? ((int (*)(uint64_t, struct isotherm_object *))found)(number, object) : ISOTHERM_ABSENT;
}

static inline int isotherm_read_statistics(struct isotherm_statistics *statistics)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_read_statistics");
    if (found)
        return ((int (*)(struct isotherm_statistics *))found)(statistics);
    if (statistics) {
        const struct isotherm_statistics none = {sizeof none, 0, 0, 0, 0, 0, 0, 0, 0};
        *statistics = none;
    }
    return ISOTHERM_ABSENT;
}

/* Says how hot memory is. The next optimization obeys. Of two hints about the same memory the later one holds; a process has
 * room for 64. */
static inline int isotherm_hint(void *address, size_t bytes, enum isotherm_hint hint)
{
    static isotherm_function_ known;
    isotherm_function_ found = isotherm_find_(&known, "isotherm_hint");
    return found ? ((int (*)(void *, size_t, enum isotherm_hint))found)(address, bytes, hint) : ISOTHERM_ABSENT;
}

/* The meaning of a status. Never NULL. */
static inline const char *isotherm_status_text(int status)
{
    switch (status) {
    case ISOTHERM_OK:
        return "done";
    case ISOTHERM_ABSENT:
        return "Isotherm's runtime is not loaded, or is off";
    case ISOTHERM_NO_OBSERVER:
        return "no process observes this one";
    case ISOTHERM_NO_SAMPLES:
        return "nothing was profiled, so nothing was moved";
    case ISOTHERM_BUSY:
        return "another thread waits for an answer";
    case ISOTHERM_INVALID:
        return "an argument is out of range";
    case ISOTHERM_OVERLAP:
        return "a part of the memory has a name already";
    case ISOTHERM_UNKNOWN:
        return "no registered object begins there";
    case ISOTHERM_NOT_MOVABLE:
        return "this memory stays where it is";
    case ISOTHERM_NO_ROOM:
        return "a table of the runtime is full";
    case ISOTHERM_FAILED:
        return "the kernel refused";
    default:
        return "an unknown status";
    }
}

/* The meaning of a reason. Never NULL. */
static inline const char *isotherm_reason_text(int reason)
{
    switch (reason) {
    case ISOTHERM_STAYED_CAPACITY:
        return "hotter data takes the fast memory that may be used";
    case ISOTHERM_STAYED_NOT_HOT:
        return "neither samples nor hints prove it hot";
    case ISOTHERM_STAYED_NOT_TOUCHED:
        return "it has no pages";
    case ISOTHERM_STAYED_NOT_MOVABLE:
        return "the run does not place this memory";
    case ISOTHERM_STAYED_NO_ROOM:
        return "the memory that it was to enter was full";
    case ISOTHERM_STAYED_IN_USE:
        return "its pages were in use";
    case ISOTHERM_STAYED_SHARED:
        return "it is shared with another process since a fork";
    case ISOTHERM_STAYED_REFUSED:
        return "the kernel refused to move it";
    default:
        return "an unknown reason";
    }
}

/* The five functions of ATMem (Chen et al., CGO 2020, listing 1). `atmem_malloc` is `malloc`: Isotherm knows its objects by the
 * calls that allocate them. */
static inline void *atmem_malloc(size_t bytes)
{
    return malloc(bytes);
}

static inline void atmem_free(void *object)
{
    free(object);
}

static inline void atmem_profiling_start(void)
{
    (void)isotherm_profile_start();
}

static inline void atmem_profiling_stop(void)
{
    (void)isotherm_profile_stop();
}

static inline void atmem_optimize(void)
{
    (void)isotherm_optimize(0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
