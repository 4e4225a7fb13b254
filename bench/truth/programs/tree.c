/* Look-ups in a balanced binary tree whose nodes were made in random order: the upper levels stay in the cache. */
#include "kernel.h"

struct node {
    uint64_t key;
    struct node *less, *more;
    uint64_t payload;
};

/* The tree of the keys from `from` to before `to`; takes nodes in the order of `places`. */
static struct node *plant(struct node *nodes, const uint32_t *places, uint64_t from, uint64_t to) {
    if (from == to)
        return NULL;
    uint64_t middle = from + (to - from) / 2;
    struct node *node = &nodes[places[middle]];
    *node = (struct node){middle, plant(nodes, places, from, middle), plant(nodes, places, middle + 1, to), middle % 97};
    return node;
}

int main(int count, char **words) {
    size_t look_ups = argument(count, words, 1, 1500000), nodes = 2 << 20;
    uint64_t state = 9, result = 0;
    uint32_t *places = ARRAY(uint32_t, nodes);
    uint64_t *queries = ARRAY(uint64_t, look_ups);
    struct node *made = ARRAY(struct node, nodes);
    for (size_t i = 0; i < nodes; i++) {
        size_t other = below(&state, i + 1);
        places[i] = places[other];
        places[other] = (uint32_t)i;
    }
    struct node *root = plant(made, places, 0, nodes);
    for (size_t i = 0; i < look_ups; i++)
        queries[i] = below(&state, nodes);
    double begin = seconds();
    for (size_t i = 0; i < look_ups; i++) {
        const struct node *node = root;
        while (node && node->key != queries[i])
            node = queries[i] < node->key ? node->less : node->more;
        result += node ? node->payload : 0;
    }
    return finish("tree", result, begin);
}
