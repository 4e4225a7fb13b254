/* Hash join: a table is built from one relation and probed by a longer one, whose matches are written. */
#include "kernel.h"

struct tuple {
    uint64_t key, payload;
};

static size_t slot_of(uint64_t key, size_t slots) {
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (slots - 1);
}

int main(int count, char **words) {
    size_t rounds = argument(count, words, 1, 6), inner = 1 << 20, outer = 1 << 22, slots = 1 << 21;
    uint64_t state = 4, result = 0;
    struct tuple *build = ARRAY(struct tuple, inner);
    struct tuple *probe = ARRAY(struct tuple, outer);
    struct tuple *table = ARRAY(struct tuple, slots);
    uint64_t *matches = ARRAY(uint64_t, outer);
    for (size_t i = 0; i < inner; i++)
        build[i] = (struct tuple){1 + i * 3, below(&state, 100)};
    for (size_t i = 0; i < outer; i++)
        probe[i] = (struct tuple){1 + below(&state, inner * 3), below(&state, 100)};
    double begin = seconds();
    for (size_t i = 0; i < inner; i++) {
        size_t slot = slot_of(build[i].key, slots);
        while (table[slot].key)
            slot = (slot + 1) & (slots - 1);
        table[slot] = build[i];
    }
    for (size_t round = 0; round < rounds; round++) {
        size_t found = 0;
        for (size_t i = 0; i < outer; i++) {
            size_t slot = slot_of(probe[i].key, slots);
            while (table[slot].key && table[slot].key != probe[i].key)
                slot = (slot + 1) & (slots - 1);
            if (table[slot].key)
                matches[found++] = table[slot].payload * probe[i].payload;
        }
        for (size_t i = 0; i < found; i++)
            result += matches[i];
    }
    return finish("join", result, begin);
}
