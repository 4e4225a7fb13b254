/* Uses the interface as the first argument says while its data changes: "random=SEED" makes random calls, right and wrong. With "observed"
 * as the second argument it begins when its observer answers. Prints how often each status was answered to an optimization, and "whole" if
 * no byte of its data was lost and every answer was one that its call can have. */
#define _GNU_SOURCE
#include <isotherm.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, SLOTS = 64, CHURNERS = 3, SMALL = 6000, STRIDE = 256, STATUSES = 16, PROFILES = 10 };

/* An object whose every STRIDE-th byte, and last one, is its mark. */
struct object {
    size_t bytes;
    unsigned char mark, *at;
};

static _Atomic(struct object *) slots[SLOTS];
static atomic_int done, torn, statuses[STATUSES];

/* Most fast memory of the run, and the bytes of which a share is meant. */
static const uint64_t capacity = 8 * MIB;
static uint64_t registered;

static void answered(int status) { statuses[status % STATUSES]++; }

static unsigned next(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static void mark(struct object *object, size_t from) {
    for (size_t at = (from + STRIDE - 1) / STRIDE * STRIDE; at < object->bytes; at += STRIDE)
        object->at[at] = object->mark;
    object->at[object->bytes - 1] = object->mark;
}

static void check(const struct object *object) {
    for (size_t at = 0; at < object->bytes; at += STRIDE)
        torn += object->at[at] != object->mark;
    torn += object->at[object->bytes - 1] != object->mark;
}

static void make(struct object *object, unsigned roll) {
    object->bytes = roll % 8 ? roll % (512 * KIB) + 1 : roll % (3 * MIB) + 1;
    object->mark = (unsigned char)roll | 1;
    object->at = isotherm_alloc(roll % 2 ? "odd" : "even", object->bytes);
    mark(object, 0);
}

static void release(struct object *object) {
    check(object);
    if (object->mark % 4 == 1)
        free(object->at);
    else
        isotherm_free(object->at);
    free(object);
}

/* Takes objects that any thread has made, checks them, and frees, resizes or keeps them. */
static void *churn(void *seed) {
    unsigned state = *(unsigned *)seed;
    while (!done) {
        unsigned roll = next(&state);
        _Atomic(struct object *) *slot = &slots[roll % SLOTS];
        struct object *object = atomic_exchange(slot, NULL);
        if (!object) {
            object = malloc(sizeof *object);
            make(object, next(&state));
        } else if (roll / SLOTS % 4 == 0) {
            release(object);
            continue;
        } else if (roll / SLOTS % 4 == 1) {
            size_t bytes = next(&state) % MIB + 1, kept = bytes < object->bytes ? bytes : object->bytes;
            check(object);
            object->at = realloc(object->at, bytes);
            object->bytes = bytes;
            mark(object, kept / STRIDE * STRIDE);
        }
        check(object);
        object = atomic_exchange(slot, object);
        if (object)
            release(object);
    }
    return NULL;
}

/* Ends the threads that churn, and releases what they left. */
static void end_churners(pthread_t *threads) {
    done = 1;
    for (int i = 0; i < CHURNERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            release(slots[i]);
}

/* The limit of a request; the data of the C library counts for a share, too, and a share is a millionth at least. */
static uint64_t limit(uint64_t fast_bytes, double share) {
    if (fast_bytes)
        return fast_bytes;
    if (share > 0 && share < 1e-6)
        share = 1e-6;
    return share > 0 ? (uint64_t)(share * (double)(registered + MIB)) + 1 : capacity;
}

/* Whether the numbers of a result fit together, and keep the limit of the request and that of the run. */
static int is_sound(const struct isotherm_result *result, uint64_t most) {
    uint64_t failed = 0;
    for (int reason = ISOTHERM_STAYED_NO_ROOM; reason < ISOTHERM_REASONS; reason++)
        failed += result->stayed_bytes[reason];
    int is_right = failed == result->failed_bytes && result->capacity_bytes <= most && result->capacity_bytes <= capacity &&
                   result->selected_bytes <= result->capacity_bytes;
    if (!is_right)
        printf("limit %llu, capacity %llu, selected %llu, failed %llu, by reason %llu\n", (unsigned long long)most,
               (unsigned long long)result->capacity_bytes, (unsigned long long)result->selected_bytes,
               (unsigned long long)result->failed_bytes, (unsigned long long)failed);
    return is_right;
}

static int optimize(uint32_t policy, uint64_t fast_bytes, double share) {
    struct isotherm_options options = {sizeof options, policy, fast_bytes, share};
    struct isotherm_result result = {.size = sizeof result};
    int status = isotherm_optimize(&options, &result);
    answered(status);
    torn += !is_sound(&result, limit(fast_bytes, share));
    return status;
}

static void profile(void (*work)(unsigned char *, unsigned), unsigned char *data, unsigned rounds) {
    isotherm_profile_start();
    work(data, rounds);
    isotherm_profile_stop();
}

/* Profiles longer each time, until the samples are enough to choose by. */
static void profile_enough(void (*work)(unsigned char *, unsigned), unsigned char *data, unsigned rounds) {
    for (int i = 1; i <= PROFILES; i++) {
        profile(work, data, rounds * i);
        if (optimize(0, 0, 0) != ISOTHERM_NO_SAMPLES)
            return;
    }
}

static void rest(unsigned char *data, unsigned rounds) {
    (void)data;
    usleep(rounds);
}

static int churned(void) {
    static const uint64_t limits[] = {0, 1, 4 * KIB, MIB, 6 * MIB, UINT64_MAX};
    unsigned seeds[CHURNERS] = {1, 2, 3};
    pthread_t threads[CHURNERS];
    for (int i = 0; i < CHURNERS; i++)
        pthread_create(&threads[i], NULL, churn, &seeds[i]);
    profile_enough(rest, NULL, 100000);
    for (int i = 0; i < 12; i++) {
        profile(rest, NULL, 100000);
        optimize(i % 3, limits[i % 6], 0);
    }
    end_churners(threads);
    return 0;
}

static struct object smalls[SMALL];

static void touch_smalls(unsigned char *data, unsigned rounds) {
    unsigned state = 1;
    (void)data;
    for (unsigned i = 0; i < rounds * 100000; i++) {
        /* The first tenth is hot. */
        struct object *object = &smalls[next(&state) % (SMALL / 10)];
        object->at[0] ^= object->mark;
        object->at[0] ^= object->mark;
    }
}

static int small(void) {
    unsigned state = 1;
    for (int i = 0; i < SMALL; i++) {
        struct object *object = &smalls[i];
        object->bytes = next(&state) % 4000 + 1;
        object->mark = (unsigned char)i | 1;
        object->at = isotherm_alloc(i % 2 ? "odd" : "even", object->bytes);
        mark(object, 0);
    }
    for (int i = 0; i < 3; i++) {
        profile_enough(touch_smalls, NULL, 300);
        optimize(i % 3, 0, 0);
        for (int j = i; j < SMALL; j += 7) {
            check(&smalls[j]);
            isotherm_free(smalls[j].at);
            smalls[j].at = isotherm_alloc("again", smalls[j].bytes);
            mark(&smalls[j], 0);
        }
    }
    for (int i = 0; i < SMALL; i++) {
        check(&smalls[i]);
        free(smalls[i].at);
    }
    return 0;
}

/* Four mebibytes that first touch has put into slow memory. */
static void touch(unsigned char *data, unsigned rounds) {
    unsigned state = 1;
    for (unsigned i = 0; i < rounds * 100000; i++)
        data[next(&state) % (4 * MIB)] |= 1;
}

/* Fast memory of no byte, less than a page, the whole machine, more than that, and shares. */
static int limits(void) {
    static const uint64_t bytes[] = {1, 4095, 4096, 2 * MIB, 1ull << 40, UINT64_MAX};
    static const double shares[] = {0, 1e-9, 1.0 / 32, 0.5, 1};
    unsigned char *data = isotherm_alloc("data", 32 * MIB);
    memset(data, 1, 32 * MIB);
    registered = 32 * MIB;
    profile_enough(touch, data + 28 * MIB, 600);
    for (int i = 0; i < 6; i++)
        optimize(0, bytes[i], 0);
    for (int i = 0; i < 5; i++)
        optimize(ISOTHERM_POLICY_THERMOS, 0, shares[i]);
    for (size_t i = 0; i < 32 * MIB; i++)
        torn += data[i] != 1;
    isotherm_free(data);
    return 0;
}

static void *optimize_often(void *data) {
    (void)data;
    for (int i = 0; i < 20; i++)
        optimize(0, (i % 4 + 1ull) * MIB, 0);
    return NULL;
}

static int together(void) {
    unsigned char *data = isotherm_alloc("data", 16 * MIB);
    pthread_t threads[CHURNERS];
    memset(data, 1, 16 * MIB);
    profile_enough(touch, data + 12 * MIB, 600);
    for (int i = 0; i < CHURNERS; i++)
        pthread_create(&threads[i], NULL, optimize_often, data);
    for (int i = 0; i < CHURNERS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 16 * MIB; i++)
        torn += data[i] != 1;
    isotherm_free(data);
    return 0;
}

/* A child and its parent optimize at one time by the parent's profile, which is over at the fork, and both check and free the data. */
static int child(void) {
    unsigned char *data = isotherm_alloc("data", 16 * MIB);
    memset(data, 1, 16 * MIB);
    profile_enough(touch, data + 12 * MIB, 600);
    for (int i = 0; i < 5; i++) {
        int status = 0;
        pid_t process = fork();
        if (process == 0) {
            int answer = isotherm_optimize(NULL, NULL);
            for (size_t at = 0; at < 16 * MIB; at += KIB)
                torn += data[at] != 1;
            isotherm_free(data);
            /* A child that lives long enough is observed itself, and has no profile. */
            _exit(torn || !(answer == ISOTHERM_ABSENT || answer == ISOTHERM_NO_OBSERVER || answer == ISOTHERM_NO_SAMPLES));
        }
        optimize(0, 2 * MIB, 0);
        waitpid(process, &status, 0);
        torn += status != 0;
    }
    isotherm_free(data);
    return 0;
}

/* The statuses that a call can have under the runtime, as a set of bits. Alone all have ISOTHERM_ABSENT. */
enum {
    REGISTERING = 1 << ISOTHERM_OK | 1 << ISOTHERM_BUSY | 1 << ISOTHERM_INVALID | 1 << ISOTHERM_OVERLAP | 1 << ISOTHERM_NOT_MOVABLE |
                  1 << ISOTHERM_NO_ROOM,
    UNREGISTERING = 1 << ISOTHERM_OK | 1 << ISOTHERM_BUSY | 1 << ISOTHERM_UNKNOWN,
    PROFILING = 1 << ISOTHERM_OK | 1 << ISOTHERM_BUSY | 1 << ISOTHERM_NO_OBSERVER,
    OPTIMIZING = PROFILING | 1 << ISOTHERM_NO_SAMPLES | 1 << ISOTHERM_INVALID,
    HINTING = 1 << ISOTHERM_OK | 1 << ISOTHERM_BUSY | 1 << ISOTHERM_INVALID | 1 << ISOTHERM_NO_ROOM,
    READING = 1 << ISOTHERM_OK | 1 << ISOTHERM_INVALID,
    NAMES = 6,
    PLACES = 8,
    MAPPED = 4,
    CALLS = 3000
};

static const char *const names[NAMES] = {"odd", "even", "", NULL, "a\tb", "0123456789012345678901234567890123456789012345678901234567890123"};
static char statics[MIB];
/* Addresses in the stacks of all threads. */
static char *_Atomic stacks[CHURNERS];

static void expect(const char *call, int status, unsigned wanted) {
    int is_alone = isotherm_version() == 0;
    if (is_alone ? status == ISOTHERM_ABSENT : wanted >> status & 1)
        return;
    printf("%s answered %d\n", call, status);
    torn++;
}

/* Memory of any kind, right and wrong. */
static char *somewhere(unsigned roll, char *const mapped[MAPPED], char *own) {
    struct object *object;
    switch (roll % PLACES) {
    case 0:
        return NULL;
    case 1:
        return (char *)4096;
    case 2:
        return own;
    case 3:
        return stacks[roll / PLACES % CHURNERS];
    case 4:
        return statics + roll / PLACES % MIB;
    case 5:
        /* Perhaps freed by now: only its address is used. */
        object = slots[roll / PLACES % SLOTS];
        return (char *)object;
    default:
        return mapped[roll / PLACES % MAPPED] + roll / 1024 % 4 * 4096;
    }
}

static void optimize_at_random(unsigned roll) {
    static const uint64_t limits[] = {0, ISOTHERM_NO_FAST_BYTES, 5000, MIB, UINT64_MAX};
    static const double shares[] = {0, 0.1, 1, 1.5, -1};
    struct isotherm_options options = {sizeof options, roll % 4, limits[roll / 4 % 5], shares[roll / 32 % 5]};
    struct isotherm_result result = {.size = roll / 256 % 4 ? sizeof result : roll / 1024 % 200};
    int status = isotherm_optimize(roll / 8192 % 4 ? &options : NULL, roll / 65536 % 4 ? &result : NULL);
    answered(status);
    expect("optimize", status, OPTIMIZING);
    if (status == ISOTHERM_OK && roll / 65536 % 4 && result.size == sizeof result)
        torn += !is_sound(&result, capacity);
}

/* A child makes calls of its own, or frees an object twice, which may end it, and ends in any case. */
static void fork_at_random(unsigned roll) {
    pid_t process = fork();
    if (process == 0) {
        char *object = isotherm_alloc("child", 100000);
        alarm(60);
        memset(object, 1, 100000);
        if (roll % 2) {
            void *volatile again = object;
            isotherm_free(object);
            isotherm_free(again);
            _exit(0);
        }
        torn = 0;
        expect("register in a child", isotherm_register("child", statics, sizeof statics), REGISTERING);
        expect("optimize in a child", isotherm_optimize(NULL, NULL), OPTIMIZING);
        isotherm_free(object);
        _exit(torn != 0);
    }
    int status;
    waitpid(process, &status, 0);
    torn += WIFEXITED(status) ? WEXITSTATUS(status) != 0 : roll % 2 == 0 || WTERMSIG(status) == SIGALRM;
}

/* Maps memory again without a word to the runtime about what was registered there. */
static void map_anew(char **mapped) {
    if (*mapped)
        munmap(*mapped, MIB);
    *mapped = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(*mapped, 7, MIB);
}

static void *call_at_random(void *seed) {
    unsigned state = *(unsigned *)seed, number = *(unsigned *)seed % CHURNERS;
    char own[8192], *mapped[MAPPED] = {0};
    stacks[number] = own;
    for (int i = 0; i < MAPPED; i++)
        map_anew(&mapped[i]);
    for (int call = 0; call < CALLS; call++) {
        unsigned roll = next(&state), more = next(&state);
        char *place = somewhere(more, mapped, own);
        size_t bytes = next(&state) % (512 * KIB);
        struct isotherm_statistics statistics = {.size = more % 256};
        switch (roll % 16) {
        case 0:
        case 1:
        case 2:
            expect("register", isotherm_register(names[more / 8 % NAMES], place, bytes), REGISTERING);
            break;
        case 3:
        case 4:
            expect("unregister", isotherm_unregister(place), UNREGISTERING);
            break;
        case 5:
            expect("stack", isotherm_register("stack", own, sizeof own), 1 << ISOTHERM_NOT_MOVABLE);
            break;
        case 6:
        case 7:
            expect("hint", isotherm_hint(place, bytes, more / 8 % 5), HINTING);
            break;
        case 8:
            expect("start", isotherm_profile_start(), PROFILING);
            break;
        case 9:
            expect("stop", isotherm_profile_stop(), PROFILING);
            break;
        case 10:
            optimize_at_random(more);
            break;
        case 11:
            expect("statistics", isotherm_read_statistics(more % 3 ? &statistics : NULL), READING);
            break;
        case 12:
            map_anew(&mapped[more % MAPPED]);
            break;
        case 13:
            if (more % 16 == 0)
                fork_at_random(more / 16);
            break;
        default:
            /* Work, whose samples the profiles have. */
            for (unsigned i = 0; i < 20000; i++)
                mapped[more % MAPPED][next(&state) % MIB] |= 1;
        }
    }
    for (int i = 0; i < MAPPED; i++)
        for (int at = 0; at < MIB; at++)
            torn += mapped[i][at] != 7;
    return NULL;
}

/* Wrong calls of three threads, while three others make and free objects. */
static int at_random(unsigned seed) {
    unsigned seeds[2 * CHURNERS];
    pthread_t threads[2 * CHURNERS];
    for (int i = 0; i < CHURNERS; i++)
        stacks[i] = statics;
    for (unsigned i = 0; i < 2 * CHURNERS; i++) {
        seeds[i] = seed / CHURNERS * CHURNERS + i;
        pthread_create(&threads[i], NULL, i < CHURNERS ? churn : call_at_random, &seeds[i]);
    }
    for (int i = CHURNERS; i < 2 * CHURNERS; i++)
        pthread_join(threads[i], NULL);
    end_churners(threads);
    return 0;
}

static int twice(void) {
    void *object = isotherm_alloc("object", 3 * MIB);
    void *volatile again = object;
    isotherm_free(object);
    isotherm_free(again);
    return 0;
}

/* On a loaded machine the observer may not have found the program while the first call waits for it. */
static void await_observer(void) {
    for (int i = 0; isotherm_profile_start() == ISOTHERM_NO_OBSERVER && i < 60000; i++)
        usleep(1000);
    isotherm_profile_stop();
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    if (count > 2 && !strcmp(words[2], "observed"))
        await_observer();
    int failed = !strcmp(how, "churn")      ? churned()
                 : !strcmp(how, "small")    ? small()
                 : !strcmp(how, "limits")   ? limits()
                 : !strcmp(how, "together") ? together()
                 : !strcmp(how, "child")    ? child()
                 : !strcmp(how, "twice")    ? twice()
                 : !strncmp(how, "random=", 7) ? at_random(strtoul(how + 7, NULL, 10))
                                            : 1;
    for (int i = 0; i < STATUSES; i++)
        if (statuses[i])
            printf("status %d %d\n", i, statuses[i]);
    puts(torn ? "torn" : "whole");
    return failed || torn;
}
