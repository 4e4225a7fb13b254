/* A stand-in for the runtime: the functions of isotherm.h, to be preloaded. It moves nothing. Every call is a line of the file
 * that DOUBLE_LOG names; memory that is registered twice or never is refused as the runtime refuses it. DOUBLE_SLEEP_MS is the
 * time that an optimization takes; DOUBLE_REFUSES makes it a runtime of another hundred of versions. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isotherm.h"

/* Exported under the name that the runtime has for it. */
#define EXPORTED(name) __asm__("isotherm_" #name) __attribute__((visibility("default")))

enum { REGISTRATIONS = 64 };
struct range {
    char *start;
    size_t bytes;
};
static struct range registered[REGISTRATIONS];
static int is_profiling, optimizations, profiles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, optimizing = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *format, ...) {
    const char *path = getenv("DOUBLE_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    va_list words;
    va_start(words, format);
    vfprintf(file, format, words);
    va_end(words);
    fclose(file);
}

int double_serves_header(int version) EXPORTED(serves_header);
int double_version(void) EXPORTED(version);
void *double_alloc(const char *name, size_t bytes) EXPORTED(alloc);
void *double_alloc_aligned(const char *name, size_t bytes, size_t alignment) EXPORTED(alloc_aligned);
void *double_calloc(const char *name, size_t count, size_t bytes) EXPORTED(calloc);
void double_free(void *object) EXPORTED(free);
int double_register(const char *name, void *address, size_t bytes) EXPORTED(register);
int double_unregister(void *address) EXPORTED(unregister);
int double_profile_start(void) EXPORTED(profile_start);
int double_profile_start_at(uint32_t frequency) EXPORTED(profile_start_at);
int double_profile_stop(void) EXPORTED(profile_stop);
int double_read_object(uint64_t number, struct isotherm_object *object) EXPORTED(read_object);
int double_optimize(const struct isotherm_options *options, struct isotherm_result *result) EXPORTED(optimize);
int double_read_statistics(struct isotherm_statistics *statistics) EXPORTED(read_statistics);
int double_hint(void *address, size_t bytes, uint32_t hint) EXPORTED(hint);

int double_serves_header(int version) {
    int refuses = getenv("DOUBLE_REFUSES") != NULL;
    if (refuses)
        say("refuses %d\n", version);
    return !refuses && version == ISOTHERM_HEADER_VERSION;
}

int double_version(void) { return ISOTHERM_HEADER_VERSION; }

void *double_alloc_aligned(const char *name, size_t bytes, size_t alignment) {
    void *block = NULL;
    if (posix_memalign(&block, alignment, bytes))
        return NULL;
    say("alloc %s %zu\n", name, bytes);
    return block;
}

void *double_calloc(const char *name, size_t count, size_t bytes) {
    say("alloc %s %zu\n", name, count * bytes);
    return calloc(count, bytes);
}

void *double_alloc(const char *name, size_t bytes) { return double_alloc_aligned(name, bytes, 64); }

void double_free(void *object) {
    say("free\n");
    free(object);
}

int double_register(const char *name, void *address, size_t bytes) {
    struct range *empty = NULL;
    char *start = address;
    say("register %s %zu\n", name, bytes);
    pthread_mutex_lock(&lock);
    int status = ISOTHERM_OK;
    for (struct range *each = registered; each < registered + REGISTRATIONS; each++) {
        if (!each->start)
            empty = each;
        else if (start < each->start + each->bytes && each->start < start + bytes)
            status = ISOTHERM_OVERLAP;
    }
    if (status == ISOTHERM_OK && !empty)
        status = ISOTHERM_NO_ROOM;
    if (status == ISOTHERM_OK)
        *empty = (struct range){start, bytes};
    pthread_mutex_unlock(&lock);
    return status;
}

int double_unregister(void *address) {
    int status = ISOTHERM_UNKNOWN;
    say("unregister\n");
    pthread_mutex_lock(&lock);
    for (struct range *each = registered; each < registered + REGISTRATIONS; each++) {
        if (each->start && each->start == address) {
            each->start = NULL;
            status = ISOTHERM_OK;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int double_profile_start(void) {
    say("profile_start\n");
    is_profiling = 1;
    return ISOTHERM_OK;
}

int double_profile_start_at(uint32_t frequency) {
    say("profile_start at %u\n", frequency);
    is_profiling = frequency <= ISOTHERM_FREQUENCY_MAX;
    return is_profiling ? ISOTHERM_OK : ISOTHERM_INVALID;
}

int double_profile_stop(void) {
    say("profile_stop\n");
    profiles += is_profiling;
    is_profiling = 0;
    return ISOTHERM_OK;
}

int double_optimize(const struct isotherm_options *options, struct isotherm_result *result) {
    if ((options && options->size != sizeof *options) || (result && result->size != sizeof *result))
        return ISOTHERM_INVALID;
    if (!options)
        say("optimize\n");
    else
        say("optimize policy %u fast %llu share %g\n", options->policy, (unsigned long long)options->fast_bytes, options->share);
    if (options && !(options->share >= 0 && options->share <= 1))
        return ISOTHERM_INVALID;
    if (pthread_mutex_trylock(&optimizing))
        return ISOTHERM_BUSY;
    usleep(getenv("DOUBLE_SLEEP_MS") ? 1000 * atoi(getenv("DOUBLE_SLEEP_MS")) : 0);
    int status = profiles ? ISOTHERM_OK : ISOTHERM_NO_SAMPLES;
    if (result)
        *result = (struct isotherm_result){sizeof *result, status, 1, 2, 3, 4, 5, 6, 7, 8, 9, {10, 11, 12, 13, 14, 15, 16, 17}, 18};
    optimizations += status == ISOTHERM_OK;
    pthread_mutex_unlock(&optimizing);
    return status;
}

/* Two objects once an optimization was made, the second without a name. */
int double_read_object(uint64_t number, struct isotherm_object *object) {
    if (object->size != sizeof *object)
        return ISOTHERM_INVALID;
    if (!optimizations || number > 1)
        return ISOTHERM_UNKNOWN;
    *object = (struct isotherm_object){sizeof *object, 0, "", 1, 2, 3, 4, 5, 6, 7, 8, 9, {10, 11, 12, 13, 14, 15, 16, 17}};
    if (number == 0)
        strcpy(object->name, "ranks");
    return ISOTHERM_OK;
}

int double_read_statistics(struct isotherm_statistics *statistics) {
    if (statistics->size != sizeof *statistics)
        return ISOTHERM_INVALID;
    *statistics = (struct isotherm_statistics){sizeof *statistics, is_profiling, 1, 2, 3, 4, optimizations, 6, 7};
    return ISOTHERM_OK;
}

int double_hint(void *address, size_t bytes, uint32_t hint) {
    say("hint %zu %u\n", bytes, hint);
    return address ? ISOTHERM_OK : ISOTHERM_INVALID;
}
