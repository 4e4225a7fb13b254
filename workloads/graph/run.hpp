// Runs the chosen kernels and prints their results and times.
#pragma once

#include <cstdint>
#include <string>

#include "../harness/options.hpp"
#include "graph.hpp"

struct Settings {
  std::string input;
  std::string output;
  uint64_t copies = 1;
  uint64_t bridges = 16;
  uint64_t rmat = 19;
  uint64_t edge_factor = 16;
  std::string kernel = "both";
  uint64_t roots = 16;
  uint64_t iterations = 200;
  uint64_t delta = 2;
  uint64_t searches = 1;
  bool check = false;
  uint64_t seed = 1;
  uint64_t threads = 2;
  uint64_t repeat = 1;
  bool optimize = false;
};

/// Makes the arrays of the kernels that `settings` names, in the order bfs, pagerank, sssp, bc, cc,
/// and runs these kernels. With `settings.optimize` the data is moved after the first repetition.
/// Ends the program where a check finds a difference (status 1) or a kernel
/// cannot handle the graph (status 2).
void run_kernels(const Graph& graph, const Settings& settings, const harness::Options& options);
