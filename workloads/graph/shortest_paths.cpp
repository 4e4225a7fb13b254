#include <algorithm>
#include <vector>

#include "../harness/random.hpp"
#include "kernels.hpp"

namespace {

constexpr uint64_t kLongestArc = 255;
constexpr uint64_t kNoBucket = UINT64_MAX;
constexpr size_t kFused = 1000;  // vertices of a bucket that a thread relaxes without the others

ARRAY_MAKER(make_arc_lengths, uint32_t, "arc_lengths")
ARRAY_MAKER(make_path_lengths, uint32_t, "path_lengths")
ARRAY_MAKER(make_bucket, uint32_t, "bucket")

/// Depends on the arc alone, so that the order of an input's arcs makes no difference.
uint32_t draw_length(uint64_t seed, uint32_t source, uint32_t target) {
  harness::Random random(harness::mix(seed) ^ (uint64_t{source} << 32 | target));
  return static_cast<uint32_t>(1 + random.below(kLongestArc));
}

/// The buckets of one thread. While bucket k is relaxed, the distances found are those of the
/// buckets from k to k + 1 + 254 / delta, so that as many slots, used in turn, are enough:
///
/// ```text
///   delta 100     bucket k holds distances 100 k to 100 k + 99
///   4 slots       an arc of 255 leads at most from 100 k + 99 to 100 k + 354, of bucket k + 3
/// ```
class Buckets {
 public:
  explicit Buckets(uint64_t delta) : delta_(delta), slots_((kLongestArc - 1) / delta + 2) {}

  [[gnu::noinline]] void add(uint32_t vertex, uint64_t distance) {
    of(distance / delta_).push_back(vertex);
  }
  std::vector<uint32_t>& of(uint64_t bucket) { return slots_[bucket % slots_.size()]; }

  /// The first bucket with vertices, from `bucket` on.
  uint64_t next(uint64_t bucket) {
    for (uint64_t i = bucket; i < bucket + slots_.size(); ++i) {
      if (!of(i).empty()) return i;
    }
    return kNoBucket;
  }

 private:
  uint64_t delta_;
  std::vector<std::vector<uint32_t>> slots_;
};

/// What the threads of one search share.
struct Round {
  uint64_t bucket = 0;
  uint64_t next = kNoBucket;
  /// Vertices of the bucket that is relaxed.
  uint64_t width = 1;
};

/// Shortens the paths to the successors of one vertex where the way through it is shorter.
void relax(const Graph& graph, uint32_t vertex, ShortestPaths* paths, Buckets* mine) {
  const uint64_t here = __atomic_load_n(&paths->distance[vertex], __ATOMIC_RELAXED);
  const uint64_t end = graph.out.offsets[vertex + 1];
  for (uint64_t i = graph.out.offsets[vertex]; i < end; ++i) {
    const uint64_t through = here + paths->lengths[i];
    uint32_t* distance = &paths->distance[graph.out.targets[i]];
    uint32_t known = __atomic_load_n(distance, __ATOMIC_RELAXED);
    while (through < known) {
      if (__atomic_compare_exchange_n(distance, &known, static_cast<uint32_t>(through), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        mine->add(graph.out.targets[i], through);
        break;
      }
    }
  }
}

/// Relaxes the vertices that a thread has put into the bucket at hand, while they are few: less
/// work for one thread is cheaper than another round of all.
void fuse(const Graph& graph, uint64_t bucket, ShortestPaths* paths, Buckets* mine) {
  std::vector<uint32_t> taken;
  while (!mine->of(bucket).empty() && mine->of(bucket).size() < kFused) {
    taken.swap(mine->of(bucket));
    for (const uint32_t vertex : taken) relax(graph, vertex, paths, mine);
    taken.clear();
  }
}

/// Makes room for the vertices of the next round; those of the last one are not needed again.
void reserve(uint64_t width, ShortestPaths* paths) {
  if (width <= paths->bucket_capacity) return;
  paths->bucket.reset();
  paths->bucket_capacity = std::max(width, paths->bucket_capacity * 2);
  paths->bucket.reset(make_bucket(paths->bucket_capacity));
}

/// Relaxes the shared bucket; each thread then proposes the bucket that it would take next.
void relax_bucket(const Graph& graph, uint64_t delta, ShortestPaths* paths, Buckets* mine,
                  Round* round) {
#pragma omp for nowait schedule(dynamic, 64)
  for (uint64_t i = 0; i < round->width; ++i) {
    const uint32_t vertex = paths->bucket[i];
    const uint64_t distance = __atomic_load_n(&paths->distance[vertex], __ATOMIC_RELAXED);
    // A vertex whose path has become shorter was relaxed with an earlier bucket.
    if (distance >= delta * round->bucket) relax(graph, vertex, paths, mine);
  }
  fuse(graph, round->bucket, paths, mine);
  const uint64_t next = mine->next(round->bucket);
#pragma omp critical
  round->next = std::min(round->next, next);
#pragma omp barrier
}

/// Takes the smallest proposal, and puts the vertices that all threads have in it together.
void gather_bucket(ShortestPaths* paths, Buckets* mine, Round* round) {
#pragma omp single
  {
    round->bucket = round->next;
    round->next = kNoBucket;
    round->width = 0;
  }
  if (round->bucket == kNoBucket) return;
  std::vector<uint32_t>& vertices = mine->of(round->bucket);
  const uint64_t begin = __atomic_fetch_add(&round->width, vertices.size(), __ATOMIC_RELAXED);
#pragma omp barrier
#pragma omp single
  reserve(round->width, paths);
  std::copy(vertices.begin(), vertices.end(), &paths->bucket[begin]);
  vertices.clear();
#pragma omp barrier
}

}  // namespace

ShortestPaths::ShortestPaths(const Graph& graph, uint64_t seed)
    : lengths(make_arc_lengths(graph.edge_count)), distance(make_path_lengths(graph.vertex_count)),
      bucket(make_bucket(graph.vertex_count)), bucket_capacity(graph.vertex_count) {
#pragma omp parallel for schedule(dynamic, 1024)
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    for (uint64_t i = graph.out.offsets[v]; i < graph.out.offsets[v + 1]; ++i) {
      lengths[i] = draw_length(seed, static_cast<uint32_t>(v), graph.out.targets[i]);
    }
  }
}

uint64_t find_paths(const Graph& graph, uint32_t root, uint64_t delta, ShortestPaths* paths) {
  std::fill_n(paths->distance.get(), graph.vertex_count, kUnreached);
  paths->distance[root] = 0;
  paths->bucket[0] = root;
  Round round;
#pragma omp parallel
  {
    Buckets mine(delta);
    while (round.bucket != kNoBucket) {
      relax_bucket(graph, delta, paths, &mine, &round);
      gather_bucket(paths, &mine, &round);
    }
  }
  const uint32_t* distance = paths->distance.get();
  return graph.vertex_count -
         static_cast<uint64_t>(std::count(distance, distance + graph.vertex_count, kUnreached));
}
