/* Uses the interface for programs as the first argument says, and prints what the functions return. */
#define _GNU_SOURCE
#include "isotherm.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARRAY_BYTES = 1 << 20 };

static char array[ARRAY_BYTES];
static const char constant[4096] = "constant";

static void show(const char *what, int status)
{
    printf("%s %d\n", what, status);
}

enum { OWN_BYTES = 1 << 20, DEEP_BYTES = 256 << 10 };

static int tell[2], end[2];

/* Says where its variables are, and waits. */
static void *wait_on_stack(void *nothing)
{
    char local[4096];
    char *address = local;
    local[0] = 0;
    if (write(tell[1], &address, sizeof address) != sizeof address || read(end[0], local, 1) != 1)
        abort();
    return nothing;
}

/* Begins a thread, whose variables are at the answer until end_thread. */
static char *begin_thread(pthread_t *thread, const pthread_attr_t *attributes)
{
    char *address;
    if (pthread_create(thread, attributes, wait_on_stack, NULL) || read(tell[0], &address, sizeof address) != sizeof address)
        abort();
    return address;
}

static void end_thread(pthread_t thread)
{
    if (write(end[1], "", 1) != 1)
        abort();
    pthread_join(thread, NULL);
}

/* Stacks of other threads: of the C library, whether in use there or not, and in memory of the program, whose rest is its own. */
static void other_stacks(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    char *memory = mmap(NULL, 2 * OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *local;
    if (memory == MAP_FAILED || pipe(tell) || pipe(end))
        abort();
    local = begin_thread(&thread, NULL);
    show("other stack", isotherm_register("stack", local, 4096));
    show("deep in other stack", isotherm_register("stack", local - DEEP_BYTES, 4096));
    show("beside other stack", isotherm_register("data", memory, 2 * OWN_BYTES));
    show("data beside", isotherm_unregister(memory));
    end_thread(thread);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory + OWN_BYTES, OWN_BYTES);
    begin_thread(&thread, &attributes);
    show("own stack", isotherm_register("stack", memory + OWN_BYTES, 4096));
    show("with own stack", isotherm_register("stack", memory, 2 * OWN_BYTES));
    show("beside own stack", isotherm_register("data", memory, OWN_BYTES));
    show("own data", isotherm_unregister(memory));
    end_thread(thread);
    pthread_attr_destroy(&attributes);
    show("stack of no thread", isotherm_register("data", memory, 2 * OWN_BYTES));
    show("data of no thread", isotherm_unregister(memory));
    munmap(memory, 2 * OWN_BYTES);
}

/* Every argument that is out of range, and every kind of memory. */
static int misuse(void)
{
    char local[4096];
    char longest[65];
    int errors = 0;
    memset(longest, 'x', 64);
    longest[64] = 0;
    local[0] = 0;
    errno = 77;
    show("static", isotherm_register("array", array, sizeof array));
    show("twice", isotherm_register("array", array, sizeof array));
    show("overlap", isotherm_register("other", array + sizeof array - 1, 1));
    show("null name", isotherm_register(NULL, array, 1));
    show("empty name", isotherm_register("", array, 1));
    show("long name", isotherm_register(longest, array, 1));
    show("control", isotherm_register("a\nb", array, 1));
    show("null", isotherm_register("null", NULL, 1));
    show("empty", isotherm_register("empty", array, 0));
    show("end", isotherm_register("end", array, SIZE_MAX));
    show("stack", isotherm_register("stack", local, sizeof local));
    other_stacks();
    show("constant", isotherm_register("constant", (void *)(size_t)constant, sizeof constant));
    show("unmapped", isotherm_register("unmapped", (void *)4096, 4096));
    show("unknown", isotherm_unregister(array + 1));
    show("unregister", isotherm_unregister(array));
    show("again", isotherm_unregister(array));
    show("renamed", isotherm_register("array again", array, sizeof array));
    show("hint", isotherm_hint(array, sizeof array, ISOTHERM_HOT));
    show("hint back", isotherm_hint(array, sizeof array, ISOTHERM_UNKNOWN_HEAT));
    show("bad hint", isotherm_hint(array, sizeof array, (enum isotherm_hint)7));
    show("no hint", isotherm_hint(NULL, 1, ISOTHERM_HOT));
    show("errno", errno);

    struct isotherm_statistics statistics = {sizeof statistics, 0, 0, 0, 0, 0, 0, 0, 0};
    show("statistics", isotherm_read_statistics(&statistics));
    printf("objects %d %d\n", (int)statistics.objects, (int)statistics.object_bytes);
    statistics.size = sizeof statistics - 8;
    show("short statistics", isotherm_read_statistics(&statistics));
    statistics.size = sizeof statistics + 4;
    show("odd statistics", isotherm_read_statistics(&statistics));
    statistics.size = 0x5a5a5a58;
    show("wild statistics", isotherm_read_statistics(&statistics));
    show("no statistics", isotherm_read_statistics(NULL));

    struct isotherm_options options = {sizeof options, 0, 0, 0.5};
    struct isotherm_result result = {.size = sizeof result, .status = 99, .samples = 1};
    options.size -= 8;
    show("short options", isotherm_optimize(&options, NULL));
    options.size = 0;
    show("no options", isotherm_optimize(&options, NULL));
    options.size = sizeof options;
    options.policy = 3;
    show("bad policy", isotherm_optimize(&options, NULL));
    options.policy = 0;
    options.share = 1.5;
    show("bad share", isotherm_optimize(&options, NULL));
    options.share = 0.0 / 0.0;
    show("no number", isotherm_optimize(&options, NULL));
    result.size = 8;
    show("short result", isotherm_optimize(NULL, &result));
    result.size = sizeof result;
    show("optimize", isotherm_optimize(NULL, &result));
    printf("result %d %d\n", (int)result.status, (int)result.samples);
    struct isotherm_object object = {.size = sizeof object};
    show("frequency", isotherm_profile_start_at(ISOTHERM_FREQUENCY_MAX + 1));
    show("no object", isotherm_read_object(0, &object));
    object.size -= 8;
    show("short object", isotherm_read_object(0, &object));
    show("null object", isotherm_read_object(0, NULL));

    void *named = isotherm_alloc("object", 100000);
    void *unnamed = isotherm_alloc(longest, 100000);
    void *null = isotherm_alloc(NULL, 100000);
    void *empty = isotherm_alloc("nothing", 0);
    errors += !named || !unnamed || !null;
    memset(named, 1, 100000);
    named = realloc(named, 300000);
    errors += ((char *)named)[99999] != 1;
    free(named);
    isotherm_free(unnamed);
    isotherm_free(null);
    free(empty);
    isotherm_free(NULL);
    char *zeros = isotherm_calloc("zeros", 3, 100001);
    errors += !zeros;
    for (int i = 0; zeros && i < 300003; i++)
        errors += zeros[i] != 0;
    memset(zeros, 1, 300003);
    isotherm_free(zeros);
    /* The same memory again, perhaps. */
    zeros = isotherm_calloc(longest, 300003, 1);
    for (int i = 0; zeros && i < 300003; i++)
        errors += zeros[i] != 0;
    free(zeros);
    free(isotherm_calloc("no zeros", 0, 8));
    errno = 0;
    volatile size_t many = (size_t)-1 / 2;
    errors += isotherm_calloc("overflow", many, 3) != NULL || errno != ENOMEM;
    void *aligned = isotherm_alloc_aligned("aligned", 5000, 4096);
    errors += !aligned || (size_t)aligned % 4096 != 0;
    free(aligned);
    errno = 0;
    errors += isotherm_alloc_aligned("odd", 100, 24) != NULL || errno != EINVAL;
    errors += isotherm_alloc_aligned("odd", 100, 0) != NULL;
    errno = 0;
    errors += isotherm_alloc("huge", (size_t)-1 / 2) != NULL || errno != ENOMEM;
    printf("errors %d\n", errors);
    return errors != 0;
}

static void *optimize(void *place)
{
    *(int *)place = isotherm_optimize(NULL, NULL);
    return NULL;
}

/* What the observer wrote of the data objects. */
static void show_objects(void)
{
    struct isotherm_object object = {.size = sizeof object};
    uint64_t number;
    for (number = 0; isotherm_read_object(number, &object) == ISOTHERM_OK; number++)
        printf("object %s %d %d %d %d\n", object.name, (int)object.address, (int)object.bytes, (int)object.demoted_bytes,
               (int)object.stayed_bytes[ISOTHERM_STAYED_REFUSED]);
    show("last object", isotherm_read_object(number, &object));
}

/* A profile and its use, with an observer. */
static int ask(void)
{
    struct isotherm_options options = {sizeof options, ISOTHERM_POLICY_THERMOS, 12345, 0.25};
    struct isotherm_result result = {.size = sizeof result};
    struct isotherm_statistics statistics = {sizeof statistics, 0, 0, 0, 0, 0, 0, 0, 0};
    pthread_t other;
    int first, second, status;
    pid_t child;

    while (isotherm_profile_start() == ISOTHERM_NO_OBSERVER)
        usleep(1000);
    isotherm_read_statistics(&statistics);
    printf("profiling %d\n", (int)statistics.profiling);
    show("stop", isotherm_profile_stop());
    show("often", isotherm_profile_start_at(2000));
    show("optimize", isotherm_optimize(&options, &result));
    show_objects();
    printf("result %d %d %d %d %d %d %d %d\n", (int)result.promoted_bytes, (int)result.demoted_bytes,
           (int)result.placed_bytes, (int)result.failed_bytes, (int)result.selected_bytes, (int)result.samples,
           (int)result.selection_ns, (int)result.migration_ns);
    printf("capacity %d stayed", (int)result.capacity_bytes);
    for (int reason = 0; reason < ISOTHERM_REASONS; reason++)
        printf(" %d", (int)result.stayed_bytes[reason]);
    printf(" frequency %d\n", (int)result.frequency);
    /* Until both ask at one time: a loaded machine may start the other thread late. */
    do {
        pthread_create(&other, NULL, optimize, &first);
        second = isotherm_optimize(NULL, NULL);
        pthread_join(other, NULL);
    } while (first == ISOTHERM_OK && second == ISOTHERM_OK);
    printf("two %d\n", first + second);
    /* A child is observed only once its own session was found. */
    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(isotherm_optimize(NULL, NULL));
    waitpid(child, &status, 0);
    show("child", WEXITSTATUS(status));
    isotherm_read_statistics(&statistics);
    printf("all %d %d %d\n", (int)statistics.optimizations, (int)statistics.promoted_bytes, (int)statistics.demoted_bytes);
    return 0;
}

/* Structs of another version of the header, between words that no function may change. */
enum { OPTIONS_WORDS = 3, RESULT_WORDS = 9, STATISTICS_WORDS = 8, WORDS = 40, MARK = 0x5a };

struct guarded {
    uint64_t before;
    union {
        uint64_t words[WORDS];
        struct isotherm_options options;
        struct isotherm_result result;
        struct isotherm_statistics statistics;
    } of;
    uint64_t behind;
};

static void guard(struct guarded *place, unsigned words)
{
    memset(place, MARK, sizeof *place);
    place->of.options.size = words * 8;
}

/* Says the size that was returned, and whether the words from this one on are as they were. */
static void show_guarded(const char *what, int status, const struct guarded *place, unsigned kept)
{
    struct guarded mark;
    memset(&mark, MARK, sizeof mark);
    int same = place->before == mark.before && place->behind == mark.behind &&
               !memcmp(place->of.words + kept, mark.of.words + kept, sizeof(uint64_t) * (WORDS - kept));
    printf("%s %d, %u bytes, %s\n", what, status, (unsigned)place->of.options.size, same ? "kept" : "lost");
}

/* The structs of version 100, and structs of a version that has more fields at their ends. */
static int versions(void)
{
    static struct guarded options, result, statistics;
    struct isotherm_options *limits = &options.of.options;
    while (isotherm_profile_start() == ISOTHERM_NO_OBSERVER)
        usleep(1000);
    guard(&options, OPTIONS_WORDS);
    limits->policy = ISOTHERM_POLICY_THERMOS;
    limits->fast_bytes = 12345;
    limits->share = 0.25;
    guard(&result, RESULT_WORDS);
    show_guarded("old", isotherm_optimize(limits, &result.of.result), &result, RESULT_WORDS);
    printf("samples %d\n", (int)result.of.result.samples);
    limits->size = WORDS * 8;
    guard(&result, WORDS);
    show_guarded("new", isotherm_optimize(limits, &result.of.result), &result, sizeof(struct isotherm_result) / 8);
    show_guarded("options", ISOTHERM_OK, &options, OPTIONS_WORDS);
    guard(&statistics, STATISTICS_WORDS);
    show_guarded("old", isotherm_read_statistics(&statistics.of.statistics), &statistics, STATISTICS_WORDS);
    guard(&statistics, WORDS);
    show_guarded("new", isotherm_read_statistics(&statistics.of.statistics), &statistics,
                 sizeof(struct isotherm_statistics) / 8);
    return 0;
}

/* Every function, for a runtime that does not serve this header. */
static int refused(void)
{
    struct isotherm_result result = {.size = sizeof result, .samples = 99};
    struct isotherm_statistics statistics = {.size = sizeof statistics, .objects = 99};
    char *object = isotherm_alloc("object", 100000), *zeros = isotherm_calloc("zeros", 1000, 100);
    char *aligned = isotherm_alloc_aligned("aligned", 8192, 4096);
    memset(object, 1, 100000);
    memset(aligned, 1, 8192);
    printf("zeros %d\n", zeros[0] + zeros[99999]);
    show("version", isotherm_version());
    show("register", isotherm_register("array", array, sizeof array));
    show("unregister", isotherm_unregister(array));
    show("start", isotherm_profile_start());
    show("stop", isotherm_profile_stop());
    show("optimize", isotherm_optimize(NULL, &result));
    printf("result %d %d\n", (int)result.status, (int)result.samples);
    show("statistics", isotherm_read_statistics(&statistics));
    printf("objects %d\n", (int)statistics.objects);
    show("hint", isotherm_hint(array, sizeof array, ISOTHERM_HOT));
    isotherm_free(object);
    isotherm_free(zeros);
    isotherm_free(aligned);
    return 0;
}

/* Data of each kind under names; stays until its input ends. */
static int names(void)
{
    char *object = isotherm_alloc("edges of web", 200000);
    char *mapping = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(object, 1, 200000);
    show("static", isotherm_register("array", array, sizeof array));
    show("mapping", isotherm_register("ranks", mapping + 4096, 1 << 20));
    show("gone", isotherm_register("gone", mapping + (2 << 20), 4096));
    show("gone", isotherm_unregister(mapping + (2 << 20)));
    show("hot", isotherm_hint(array, sizeof array, ISOTHERM_HOT));
    show("cold", isotherm_hint(object, 200000, ISOTHERM_COLD));
    printf("%p %p %p\n", (void *)object, (void *)array, (void *)(mapping + 4096));
    fflush(stdout);
    return getchar() != EOF;
}

/* Random calls by three threads, with a fork now and then. */
static unsigned long seed;

static unsigned long next(unsigned long *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *texts[] = {"a", "b", "", NULL, "a\tb", "edges", "0123456789012345678901234567890123456789012345678901234567890123"};

static void *random_calls(void *number)
{
    unsigned long state = seed ^ (*(unsigned long *)number * 0x9e3779b97f4a7c15);
    char *held[16] = {0};
    int turn;
    for (turn = 0; turn < 4000; turn++) {
        unsigned long roll = next(&state);
        const char *name = texts[roll % 7];
        char **place = &held[roll / 7 % 16];
        char *address = array + roll / 128 % sizeof array;
        size_t bytes = roll / 1024 % 300000;
        struct isotherm_statistics statistics = {(uint32_t)(roll % 80), 0, 0, 0, 0, 0, 0, 0, 0};
        struct isotherm_result result = {.size = roll % 3 ? sizeof result : 4};
        switch (roll >> 32 & 15) {
        case 0:
        case 1:
        case 2:
            free(*place);
            *place = isotherm_alloc(name, bytes);
            memset(*place, 1, bytes);
            break;
        case 3:
            *place = realloc(*place, bytes + 1);
            **place = 2;
            break;
        case 4:
            isotherm_free(*place);
            if (roll % 3 == 0) {
                *place = isotherm_calloc(name, bytes + 1, 1);
                if ((*place)[bytes / 2])
                    abort();
                break;
            }
            *place = isotherm_alloc_aligned(name, bytes, (size_t)1 << roll % 16);
            break;
        case 5:
        case 6:
            isotherm_register(name, address, bytes);
            break;
        case 7:
        case 8:
            isotherm_unregister(address);
            break;
        case 9:
            isotherm_register(name, *place, bytes);
            break;
        case 10:
            isotherm_hint(address, bytes, (enum isotherm_hint)(roll % 5));
            break;
        case 11:
            isotherm_read_statistics(&statistics);
            break;
        case 12:
            isotherm_optimize(NULL, &result);
            break;
        case 13:
            isotherm_profile_stop();
            break;
        case 14:
            isotherm_register(name, &state, bytes);
            break;
        default:
            if (roll % 8 == 0) {
                pid_t child = fork();
                if (child == 0) {
                    free(isotherm_alloc("child", 100000));
                    isotherm_register("child", array, 1000);
                    _exit(isotherm_profile_start() == ISOTHERM_OK);
                }
                waitpid(child, NULL, 0);
            }
        }
    }
    for (turn = 0; turn < 16; turn++)
        free(held[turn]);
    return NULL;
}

static int random_misuse(void)
{
    pthread_t threads[3];
    unsigned long numbers[3] = {1, 2, 3};
    int i;
    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, random_calls, &numbers[i]);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "misuse";
    if (!strcmp(how, "ask"))
        return ask();
    if (!strcmp(how, "names"))
        return names();
    if (!strcmp(how, "versions"))
        return versions();
    if (!strcmp(how, "refused"))
        return refused();
    if (!strcmp(how, "random") && count > 2) {
        seed = strtoul(words[2], NULL, 10);
        return random_misuse();
    }
    if (!strcmp(how, "version")) {
        printf("%d\n", isotherm_version());
        return 0;
    }
    return misuse();
}
