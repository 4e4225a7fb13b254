#include "optimize.hpp"

void Optimization::note(const char* function, int status) {
  if (status_ != ISOTHERM_OK || status == ISOTHERM_OK) return;
  failed_ = function;
  status_ = status;
}

void Optimization::start() {
  start_time_.start();
  note("isotherm_profile_start", isotherm_profile_start());
  start_time_.stop();
}

void Optimization::move() {
  stop_time_.start();
  note("isotherm_profile_stop", isotherm_profile_stop());
  stop_time_.stop();
  result_.size = sizeof result_;
  optimize_time_.start();
  note("isotherm_optimize", isotherm_optimize(nullptr, &result_));
  optimize_time_.stop();
  if (status_ == ISOTHERM_OK) return;
  std::fprintf(stderr, "graph: %s: %s\n", failed_, isotherm_status_text(status_));
}

void Optimization::print() const {
  const auto print_bytes = [](const char* name, uint64_t bytes) {
    harness::print_measure(name, static_cast<double>(bytes));
  };
  harness::print_measure("profile_start_seconds", start_time_.seconds());
  harness::print_measure("profile_stop_seconds", stop_time_.seconds());
  harness::print_measure("optimize_seconds", optimize_time_.seconds());
  harness::print_measure("select_seconds", static_cast<double>(result_.selection_ns) * 1e-9);
  harness::print_measure("move_seconds", static_cast<double>(result_.migration_ns) * 1e-9);
  harness::print_measure("samples", static_cast<double>(result_.samples));
  print_bytes("selected_bytes", result_.selected_bytes);
  print_bytes("placed_bytes", result_.placed_bytes);
  print_bytes("promoted_bytes", result_.promoted_bytes);
  print_bytes("demoted_bytes", result_.demoted_bytes);
  print_bytes("failed_bytes", result_.failed_bytes);
}
