// Ranks of a graph whose low vertices have most links: arrays by name, one iteration profiled, then the hot parts moved.
#include <cstdlib>
#include <iostream>
#include <numeric>
#include "isotherm.hpp"

constexpr int links_each = 8, iterations = 10;
constexpr std::int64_t prime = 1000000007;
using ranks = isotherm::array<std::int64_t>;

static void iterate(const isotherm::array<std::int32_t> &links, const ranks &now, ranks &next) {
    for (std::size_t v = 0; v < next.size(); v++) {
        std::int64_t sum = v;
        for (int k = 0; k < links_each; k++) sum += now[links[v * links_each + k]];
        next[v] = sum % prime;
    }
}

int main(int argc, char **argv) {
    const std::int64_t n = std::int64_t{1} << (argc > 1 ? std::atoi(argv[1]) : 20);
    isotherm::array<std::int32_t> links("links", n * links_each);
    ranks now("ranks", n), next("next", n);
    for (std::int64_t i = 0; i < n * links_each; i++) {
        const std::int64_t x = i * 2654435761 % 4294967296 * n / 4294967296;
        links[i] = static_cast<std::int32_t>(x * x / n);
    }
    std::fill(now.begin(), now.end(), 1);
    iterate(links, now, next);
    isotherm::result moved;
    {
        isotherm::profile scope(isotherm::options{}, &moved);
        iterate(links, next, now);
    }
    std::cout << "moved " << moved.promoted_bytes << " bytes to fast memory: " << isotherm::text(moved.status) << '\n';
    for (int step = 2; step < iterations; step += 2) {
        iterate(links, now, next);
        iterate(links, next, now);
    }
    std::cout << "checksum " << std::accumulate(now.begin(), now.end(), std::int64_t{0}) % prime << '\n';
}
