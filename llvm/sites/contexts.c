// Fills in the record of a context at its first use: finds the calls behind its number.
#include "resolve.h"

#include "isotherm_contexts.h"

// Defined only by a link that distinguishes contexts.
extern const struct isotherm_contexts contexts __asm__(ISOTHERM_CONTEXTS_SYMBOL)
    __attribute__((weak, visibility("hidden")));

// The arrays behind the header.
struct arrays {
    const struct isotherm_frame *frames;
    const uint32_t *listed_frames;
    const struct isotherm_context_function *functions;
    const struct isotherm_context_call *calls;
    const uint32_t *first_numbers;
    const struct isotherm_context_allocation *allocations;
};

static struct arrays arrays_of(const struct isotherm_contexts *table) {
    struct arrays arrays;
    arrays.frames = (const void *)(table + 1);
    arrays.listed_frames = (const void *)(arrays.frames + table->frames);
    arrays.functions = (const void *)(arrays.listed_frames + table->listed_frames);
    arrays.calls = (const void *)(arrays.functions + table->functions);
    arrays.first_numbers = (const void *)(arrays.calls + table->calls);
    arrays.allocations =
        (const void *)(arrays.first_numbers + (size_t)table->calls * table->levels);
    return arrays;
}

static const void *at(const int32_t *place) { return (const char *)place + *place; }

// The allocation whose records include this one.
static const struct isotherm_context_allocation *
allocation_of(const struct isotherm_contexts *table, const struct arrays *arrays, uint32_t record) {
    uint32_t low = 0, high = table->allocations;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (arrays->allocations[middle].first_record <= record)
            low = middle;
        else
            high = middle;
    }
    return &arrays->allocations[low];
}

// The frames of a path, from the inside out.
struct path {
    const struct isotherm_frame *frames[ISOTHERM_CONTEXT_LEVELS];
    uint32_t depth;
};

static void append(struct path *path, const struct arrays *arrays, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count && path->depth < ISOTHERM_CONTEXT_LEVELS; ++i)
        path->frames[path->depth++] = &arrays->frames[arrays->listed_frames[first + i]];
}

// Appends the calls behind a number at a level of a function: each round goes one call outwards, to the call
// with the greatest first number that is not above.
static void append_numbered(struct path *path, const struct isotherm_contexts *table,
                            const struct arrays *arrays, uint32_t function, uint32_t level,
                            uint32_t number) {
    while (level > 0 && number > 0 && function != ISOTHERM_CONTEXTS_NONE) {
        const struct isotherm_context_function *called = &arrays->functions[function];
        uint32_t low = called->first_call, high = low + called->calls;
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            if (arrays->first_numbers[(size_t)middle * table->levels + level - 1] <= number)
                low = middle;
            else
                high = middle;
        }
        const struct isotherm_context_call *call = &arrays->calls[low];
        number -= arrays->first_numbers[(size_t)low * table->levels + level - 1];
        uint32_t frames = call->frames < level ? call->frames : level;
        append(path, arrays, call->first_frame, frames);
        level -= frames;
        function = call->caller;
    }
}

// Concurrent threads write the same words; a thread that sees the name sees the others.
void isotherm_fill_context(struct isotherm_site *site) {
    if (&contexts == NULL || __atomic_load_n(&site->id, __ATOMIC_ACQUIRE) != 0)
        return;
    const struct isotherm_contexts *table = &contexts;
    struct arrays arrays = arrays_of(table);
    const struct isotherm_site *first = at(&table->first_record);
    uint32_t record = (uint32_t)(site - first);
    const struct isotherm_context_allocation *allocation = allocation_of(table, &arrays, record);
    const struct isotherm_site *named = at(&allocation->site);
    struct path path = {.depth = 0};
    append(&path, &arrays, allocation->first_frame, allocation->frames);
    append_numbered(&path, table, &arrays, allocation->function, allocation->level,
                    record - allocation->first_record);

    struct isotherm_context_record *context = (void *)site;
    uint64_t id = named->id;
    const void *target = named;
    for (uint32_t i = 0; i <= path.depth; ++i) {
        if (i > 0) {
            const struct isotherm_frame *frame = path.frames[i - 1];
            id = isotherm_longer_context(id, (uint64_t)frame->hash_high << 32 | frame->hash_low);
            target = frame;
        }
        int32_t distance = (int32_t)((const char *)target - (const char *)&context->frames[i]);
        __atomic_store_n(&context->frames[i], distance, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&context->depth, path.depth + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&context->version, named->version, __ATOMIC_RELAXED);
    __atomic_store_n(&context->id, id, __ATOMIC_RELEASE);
}
