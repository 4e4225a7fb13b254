/* PageRank by pull on a random graph with hubs: arcs are a stream, ranks are gathered from, more often those of hubs. */
#include "kernel.h"

int main(int count, char **words) {
    size_t rounds = argument(count, words, 1, 16), vertices = 1 << 21, arcs = 12 << 20;
    uint64_t state = 5, result = 0;
    uint32_t *names = ARRAY(uint32_t, vertices * 8);
    uint32_t *begins = ARRAY(uint32_t, vertices + 1);
    uint32_t *sources = ARRAY(uint32_t, arcs);
    uint32_t *degrees = ARRAY(uint32_t, vertices);
    float *ranks = ARRAY(float, vertices);
    float *shares = ARRAY(float, vertices);
    for (size_t vertex = 0; vertex < vertices; vertex++) {
        begins[vertex + 1] = (uint32_t)((vertex + 1) * (arcs / vertices));
        ranks[vertex] = 1;
        names[vertex * 8] = (uint32_t)vertex;
    }
    for (size_t arc = 0; arc < arcs; arc++) {
        sources[arc] = (uint32_t)skewed_below(&state, vertices);
        degrees[sources[arc]]++;
    }
    double begin = seconds();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t vertex = 0; vertex < vertices; vertex++)
            shares[vertex] = degrees[vertex] ? ranks[vertex] / (float)degrees[vertex] : 0;
        for (size_t vertex = 0; vertex < vertices; vertex++) {
            float sum = 0;
            for (uint32_t arc = begins[vertex]; arc < begins[vertex + 1]; arc++)
                sum += shares[sources[arc]];
            ranks[vertex] = 0.15f + 0.85f * sum;
        }
    }
    for (size_t vertex = 0; vertex < vertices; vertex++)
        result += (uint64_t)(ranks[vertex] * 1024);
    return finish("rank", result, begin);
}
