// NUMABench of Cross-Layer (TACO 2018, section 6.2): MemBench with a share of the hot objects on another node than the threads.
//
//   cold   | 2 GiB, touched once |     hot_local   | hot objects |     hot_remote   | --remote percent of them |
//
// A plan places `hot_remote` on the other node, or in the slow tier of the emulated pair.
#include "../harness/hot_objects.hpp"
#include "../harness/objects.hpp"

namespace {

struct Settings {
  harness::HotSettings hot;
  uint64_t remote = 0;
};

int run(const Settings& settings) {
  using harness::HotObject;
  harness::Objects objects;
  const uint64_t cold_count = settings.hot.cold / sizeof(HotObject), hot_count = settings.hot.hot / sizeof(HotObject);
  const uint64_t remote_count = hot_count * settings.remote / 100, local_count = hot_count - remote_count;
  HotObject* cold = NAMED_ARRAY(objects, HotObject, "cold", std::max<uint64_t>(1, cold_count));
  harness::touch_cold(cold, cold_count);
  HotObject* local = NAMED_ARRAY(objects, HotObject, "hot_local", std::max<uint64_t>(1, local_count));
  HotObject* remote = NAMED_ARRAY(objects, HotObject, "hot_remote", std::max<uint64_t>(1, remote_count));
  harness::HotObjects order(local, local_count, remote, remote_count);
  const int status = harness::run_hot("numabench", settings.hot, order);
  if (settings.hot.objects) objects.print();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("numabench", "hot objects of two nodes in random order, with a delay, beside cold ones");
  harness::add_options(options, settings.hot);
  options.count("--remote", &settings.remote, 0, 100, "percent of the hot objects that are on the remote node");
  options.parse(argc, argv);
  return harness::with_threads(options, settings.hot.threads, harness::kTooLarge, [&] { return run(settings); });
}
