// MemBench of Cross-Layer (TACO 2018, section 6.1): threads write hot objects in random order, with a delay between two of them, beside
// cold objects that nothing reaches.
//
//   cold   | 2 GiB, touched once |        hot   | 200 MiB, a cache line for each object |
#include "../harness/hot_objects.hpp"
#include "../harness/objects.hpp"

namespace {

int run(const harness::HotSettings& settings) {
  using harness::HotObject;
  harness::Objects objects;
  const uint64_t cold_count = settings.cold / sizeof(HotObject), hot_count = settings.hot / sizeof(HotObject);
  HotObject* cold = NAMED_ARRAY(objects, HotObject, "cold", std::max<uint64_t>(1, cold_count));
  harness::touch_cold(cold, cold_count);
  HotObject* hot = NAMED_ARRAY(objects, HotObject, "hot", hot_count);
  harness::HotObjects order(hot, hot_count, nullptr, 0);
  const int status = harness::run_hot("membench", settings, order);
  if (settings.objects) objects.print();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  harness::HotSettings settings;
  harness::Options options("membench", "hot objects in random order, with a delay, beside cold ones");
  harness::add_options(options, settings);
  options.parse(argc, argv);
  return harness::with_threads(options, settings.threads, harness::kTooLarge, [&] { return run(settings); });
}
