// Energy that flows through the zones of the parts of a mesh, by OpenMP: each thread takes parts, and follows the list of a part's
// zones from the first to the last. The work per zone is one product and two sums, so the time is that of the memory.
//
//   parts   | part 0: first, residue, 4 KiB | part 1 ...             each part is one page
//   zones   | zone: value, next | zone ... of part 0 | of part 1 ... 32 bytes each
//
// In each cycle all parts receive an equal share of one unit and of all residues. A zone keeps a fixed share of what arrives and
// passes the rest on; what remains after the last zone is the residue of the part.
#include <omp.h>

#include <string>
#include <vector>

#include "../harness/objects.hpp"
#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"

namespace {

struct Settings {
  uint64_t parts = 6400;
  uint64_t zones = 640;
  uint64_t cycles = 60;
  uint64_t threads = 2;
  uint64_t repeat = 1;
  std::string schedule = "static";
  bool check = false;
  bool objects = false;
};

struct Zone {
  uint64_t number;
  uint64_t part;
  double value;
  Zone* next;
};

/// A page of its own, so that threads share no page of parts.
struct Part {
  Zone* first;
  double residue;
  uint64_t number;
  unsigned char rest[4096 - 24];
};

static_assert(sizeof(Zone) == 32 && sizeof(Part) == 4096);

struct Mesh {
  Part* parts;
  Zone* zones;
  uint64_t part_count;
  uint64_t zones_of_part;
};

/// Joins the zones to lists, with no energy in them. A part's thread writes it first.
void join(const Mesh& mesh) {
#pragma omp parallel for schedule(static)
  for (uint64_t number = 0; number < mesh.part_count; ++number) {
    Zone* zones = mesh.zones + number * mesh.zones_of_part;
    for (uint64_t i = 0; i < mesh.zones_of_part; ++i) {
      zones[i] = {i, number, 0, i + 1 < mesh.zones_of_part ? &zones[i + 1] : nullptr};
    }
    mesh.parts[number] = {zones, 0, number, {}};
  }
}

/// What each part receives in a cycle. Added up in the order of the parts, so that the number of threads does not matter.
double share_of_part(const Mesh& mesh) {
  double residues = 0;
  for (uint64_t i = 0; i < mesh.part_count; ++i) residues += mesh.parts[i].residue;
  return (1 + residues) / static_cast<double>(mesh.part_count);
}

/// The share of what arrives at a zone that it keeps.
double kept_share(uint64_t zones_of_part) { return 1 / static_cast<double>(zones_of_part + 1); }

void pass_through(Part* part, double energy, double kept) {
  for (Zone* zone = part->first; zone != nullptr; zone = zone->next) {
    const double deposit = energy * kept;
    zone->value += deposit;
    energy -= deposit;
  }
  part->residue = energy;
}

void cycle(const Mesh& mesh) {
  const double share = share_of_part(mesh);
  const double kept = kept_share(mesh.zones_of_part);
#pragma omp parallel for schedule(runtime)
  for (uint64_t i = 0; i < mesh.part_count; ++i) pass_through(&mesh.parts[i], share, kept);
}

unsigned long long checksum(const Mesh& mesh) {
  harness::Checksum sum;
  for (uint64_t i = 0; i < mesh.part_count * mesh.zones_of_part; ++i) sum.add(mesh.zones[i].value);
  for (uint64_t i = 0; i < mesh.part_count; ++i) sum.add(mesh.parts[i].residue);
  return sum.value();
}

/// The zones of one part after all cycles, and its residue at the end: all parts have equal ones.
std::vector<double> one_part(const Mesh& mesh, uint64_t cycles) {
  std::vector<double> values(mesh.zones_of_part + 1);
  double& residue = values.back();
  const double kept = kept_share(mesh.zones_of_part);
  for (uint64_t turn = 0; turn < cycles; ++turn) {
    double residues = 0;
    for (uint64_t i = 0; i < mesh.part_count; ++i) residues += residue;
    residue = (1 + residues) / static_cast<double>(mesh.part_count);
    for (uint64_t i = 0; i < mesh.zones_of_part; ++i) {
      const double deposit = residue * kept;
      values[i] += deposit;
      residue -= deposit;
    }
  }
  return values;
}

bool agrees(const Mesh& mesh, uint64_t cycles) {
  const std::vector<double> wanted = one_part(mesh, cycles);
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  for (uint64_t i = 0; i < mesh.part_count * mesh.zones_of_part; ++i) {
    const Zone& zone = mesh.zones[i];
    if (zone.value == wanted[i % mesh.zones_of_part]) continue;
    std::printf("zones: zone %llu of part %llu has %.17e, not %.17e\n", number(zone.number), number(zone.part), zone.value,
                wanted[i % mesh.zones_of_part]);
    return false;
  }
  for (uint64_t i = 0; i < mesh.part_count; ++i) {
    if (mesh.parts[i].residue == wanted.back()) continue;
    std::printf("zones: part %llu has a residue of %.17e, not %.17e\n", number(i), mesh.parts[i].residue, wanted.back());
    return false;
  }
  std::printf("zones: agrees with the zones of one part\n");
  return true;
}

int run(const Settings& settings) {
  harness::Objects objects;
  Part* parts = NAMED_ARRAY(objects, Part, "parts", settings.parts);
  Zone* zones = NAMED_ARRAY(objects, Zone, "zones", settings.parts * settings.zones);
  const Mesh mesh = {parts, zones, settings.parts, settings.zones};
  harness::Stopwatch kernel;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    join(mesh);
    kernel.start();
    for (uint64_t turn = 0; turn < settings.cycles; ++turn) cycle(mesh);
    kernel.stop();
  }
  std::printf("zones: parts %llu zones %llu checksum %016llx\n", static_cast<unsigned long long>(settings.parts),
              static_cast<unsigned long long>(settings.zones), checksum(mesh));
  if (settings.objects) objects.print();
  harness::print_measure("kernel_seconds", kernel.seconds());
  return !settings.check || agrees(mesh, settings.cycles) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("zones", "energy that flows through the zones of the parts of a mesh");
  options.count("--parts", &settings.parts, 1, 1 << 24, "parts of the mesh, 4 KiB each");
  options.count("--zones", &settings.zones, 1, 1 << 24, "zones of each part, 32 bytes each");
  options.count("--cycles", &settings.cycles, 1, 1000000000, "times that the energy flows through all parts");
  options.word("--schedule", &settings.schedule, "static|dynamic|guided", "how OpenMP gives the parts to the threads");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernel runs, from an empty mesh");
  options.flag("--check", &settings.check, "compare every zone with that of one part alone");
  options.flag("--objects", &settings.objects, "print the name and the bytes of each object");
  options.parse(argc, argv);
  omp_set_schedule(settings.schedule == "static" ? omp_sched_static : settings.schedule == "dynamic" ? omp_sched_dynamic : omp_sched_guided, 0);
  const std::string too_large =
      "--parts " + std::to_string(settings.parts) + " with --zones " + std::to_string(settings.zones) + " need more memory than there is";
  return harness::with_threads(options, settings.threads, too_large, [&] { return run(settings); });
}
