#include <algorithm>
#include <vector>

#include "kernels.hpp"

namespace {

constexpr double kDamping = 0.85;
constexpr uint64_t kBlock = 4096;  // vertices whose partial sum is one term of a fixed order

ARRAY_MAKER(make_ranks, double, "rank")
ARRAY_MAKER(make_shares, double, "share")

/// Sets the share of each vertex and returns the rank of those without successors.
double spread_shares(const Graph& graph, Ranking* ranking, std::vector<double>* partial) {
#pragma omp parallel for schedule(static)
  for (uint64_t block = 0; block < partial->size(); ++block) {
    const uint64_t end = std::min((block + 1) * kBlock, graph.vertex_count);
    double dangling = 0;
    for (uint64_t v = block * kBlock; v < end; ++v) {
      const uint64_t degree = graph.out.offsets[v + 1] - graph.out.offsets[v];
      if (degree == 0) {
        dangling += ranking->rank[v];
        ranking->share[v] = 0;
      } else {
        ranking->share[v] = ranking->rank[v] / static_cast<double>(degree);
      }
    }
    (*partial)[block] = dangling;
  }
  double sum = 0;
  for (const double part : *partial) sum += part;
  return sum;
}

/// Each vertex takes in the shares of its predecessors.
void pull_ranks(const Graph& graph, double base, Ranking* ranking) {
#pragma omp parallel for schedule(dynamic, 1024)
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    double sum = 0;
    const uint64_t end = graph.in.offsets[v + 1];
    for (uint64_t i = graph.in.offsets[v]; i < end; ++i) sum += ranking->share[graph.in.targets[i]];
    ranking->rank[v] = base + kDamping * sum;
  }
}

}  // namespace

Ranking::Ranking(uint64_t vertex_count)
    : rank(make_ranks(vertex_count)), share(make_shares(vertex_count)) {}

void rank_pages(const Graph& graph, uint64_t iterations, Ranking* ranking) {
  const auto count = static_cast<double>(graph.vertex_count);
  std::fill_n(ranking->rank.get(), graph.vertex_count, 1 / count);
  std::vector<double> partial((graph.vertex_count + kBlock - 1) / kBlock);
  for (uint64_t turn = 0; turn < iterations; ++turn) {
    const double dangling = spread_shares(graph, ranking, &partial);
    pull_ranks(graph, (1 - kDamping + kDamping * dangling) / count, ranking);
  }
}
