// Macroscopic cross-sections of a material at random energies, as a Monte Carlo code for neutrons looks them up.
//
//   nuclide_grid  | energy and five cross-sections, by energy | ... of the next nuclide |        48 bytes each
//   energy_grid   | all energies, in order | for each of them the place in each nuclide's grid | 8 + 4 × nuclides bytes each
//
// A look-up finds its energy in the energy grid by bisection, reads the row of places, and interpolates the cross-sections of
// each nuclide of the material: two neighbours in each nuclide's grid.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "../harness/objects.hpp"
#include "../harness/options.hpp"
#include "../harness/random.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"

namespace {

constexpr uint64_t kKinds = 5;  // total, elastic, absorption, fission, neutrons by fission
using CrossSections = std::array<double, kKinds>;

/// The share of look-ups in a material, and how many of 68 nuclides it has: fuel, cladding, water, and parts of a reactor.
struct Material {
  double share;
  uint64_t nuclides;
};

constexpr uint64_t kNuclidesOfTable = 68;
constexpr Material kMaterials[] = {{0.140, 34}, {0.052, 5},  {0.275, 4},  {0.134, 4},  {0.154, 27}, {0.064, 21},
                                   {0.066, 21}, {0.055, 21}, {0.008, 21}, {0.015, 21}, {0.025, 9},  {0.012, 9}};

struct Settings {
  uint64_t nuclides = kNuclidesOfTable;
  uint64_t gridpoints = 12000;
  uint64_t lookups = 700000;
  uint64_t threads = 2;
  uint64_t repeat = 1;
  bool laps = false;
  bool check = false;
  bool objects = false;
};

struct NuclidePoint {
  double energy;
  CrossSections sections;
};

static_assert(sizeof(NuclidePoint) == 48);

struct Data {
  uint64_t nuclides, gridpoints, energies;
  NuclidePoint* nuclide_grid;
  double* energy;   // the first part of energy_grid
  uint32_t* place;  // its second part: a row of `nuclides` for each energy
};

/// The nuclides of each material one after the other, and their densities.
struct Composition {
  uint64_t begin[std::size(kMaterials) + 1];
  std::vector<uint32_t> nuclides;
  std::vector<double> densities;
};

struct Lookup {
  double energy;
  uint64_t material;
};

void fill_nuclides(const Data& data) {
#pragma omp parallel for schedule(static)
  for (uint64_t nuclide = 0; nuclide < data.nuclides; ++nuclide) {
    harness::Random random(1 + nuclide);
    NuclidePoint* grid = data.nuclide_grid + nuclide * data.gridpoints;
    for (uint64_t i = 0; i < data.gridpoints; ++i) {
      grid[i].energy = random.unit();
      for (double& section : grid[i].sections) section = random.unit();
    }
    std::sort(grid, grid + data.gridpoints, [](const auto& left, const auto& right) { return left.energy < right.energy; });
  }
}

/// The energies of all nuclides in order, each with its place in the grid of each nuclide: the last point that is not above it,
/// and not the last of the grid.
void fill_energies(const Data& data) {
  for (uint64_t i = 0; i < data.energies; ++i) data.energy[i] = data.nuclide_grid[i].energy;
  std::sort(data.energy, data.energy + data.energies);
#pragma omp parallel for schedule(static)
  for (uint64_t nuclide = 0; nuclide < data.nuclides; ++nuclide) {
    const NuclidePoint* grid = data.nuclide_grid + nuclide * data.gridpoints;
    uint64_t place = 0;
    for (uint64_t i = 0; i < data.energies; ++i) {
      while (place + 2 < data.gridpoints && grid[place + 1].energy <= data.energy[i]) ++place;
      data.place[i * data.nuclides + nuclide] = static_cast<uint32_t>(place);
    }
  }
}

/// Materials of the table, with as large a part of the nuclides as they have of 68.
Composition compose(uint64_t nuclides) {
  Composition composition;
  harness::Random random(0);
  std::vector<uint32_t> all(nuclides);
  std::iota(all.begin(), all.end(), 0);
  composition.begin[0] = 0;
  for (size_t material = 0; material < std::size(kMaterials); ++material) {
    const uint64_t count = std::max<uint64_t>(1, kMaterials[material].nuclides * nuclides / kNuclidesOfTable);
    for (uint64_t i = 0; i < count; ++i) {
      std::swap(all[i], all[i + random.below(nuclides - i)]);
      composition.nuclides.push_back(all[i]);
      composition.densities.push_back(random.unit());
    }
    composition.begin[material + 1] = composition.nuclides.size();
  }
  return composition;
}

/// The look-up of a number: the same whichever thread does it.
Lookup draw(uint64_t number) {
  harness::Random random(number ^ (uint64_t{1} << 63));
  Lookup lookup = {random.unit(), std::size(kMaterials) - 1};
  double rest = random.unit();
  for (size_t material = 0; material < std::size(kMaterials); ++material) {
    rest -= kMaterials[material].share;
    if (rest < 0) {
      lookup.material = material;
      break;
    }
  }
  return lookup;
}

/// Adds the cross-sections of a nuclide between a point of its grid and the next one.
void add_between(CrossSections& sum, const NuclidePoint* point, double energy, double density) {
  const double part = (point[1].energy - energy) / (point[1].energy - point[0].energy);
  for (uint64_t kind = 0; kind < kKinds; ++kind) {
    const double high = point[1].sections[kind];
    sum[kind] += density * (high - part * (high - point[0].sections[kind]));
  }
}

CrossSections look_up(const Data& data, const Composition& composition, const Lookup& lookup) {
  const double* after = std::upper_bound(data.energy, data.energy + data.energies, lookup.energy);
  const uint64_t row = after == data.energy ? 0 : static_cast<uint64_t>(after - data.energy) - 1;
  const uint32_t* places = data.place + row * data.nuclides;
  CrossSections sum = {};
  for (uint64_t i = composition.begin[lookup.material]; i < composition.begin[lookup.material + 1]; ++i) {
    const uint32_t nuclide = composition.nuclides[i];
    add_between(sum, data.nuclide_grid + nuclide * data.gridpoints + places[nuclide], lookup.energy, composition.densities[i]);
  }
  return sum;
}

/// The same without the energy grid: each nuclide's grid is searched from its beginning.
CrossSections search_all(const Data& data, const Composition& composition, const Lookup& lookup) {
  CrossSections sum = {};
  for (uint64_t i = composition.begin[lookup.material]; i < composition.begin[lookup.material + 1]; ++i) {
    const NuclidePoint* grid = data.nuclide_grid + composition.nuclides[i] * data.gridpoints;
    uint64_t place = 0;
    while (place + 2 < data.gridpoints && grid[place + 1].energy <= lookup.energy) ++place;
    add_between(sum, grid + place, lookup.energy, composition.densities[i]);
  }
  return sum;
}

/// Adds up a hash of each look-up, in any order.
uint64_t look_up_all(const Data& data, const Composition& composition, uint64_t lookups) {
  uint64_t hashes = 0;
#pragma omp parallel for schedule(static) reduction(+ : hashes)
  for (uint64_t number = 0; number < lookups; ++number) {
    harness::Checksum hash;
    for (double section : look_up(data, composition, draw(number))) hash.add(section);
    hashes += hash.value();
  }
  return hashes;
}

bool agrees(const Data& data, const Composition& composition, uint64_t lookups) {
  const uint64_t checked = std::min<uint64_t>(lookups, 2000);
  for (uint64_t number = 0; number < checked; ++number) {
    const Lookup lookup = draw(number);
    if (look_up(data, composition, lookup) == search_all(data, composition, lookup)) continue;
    std::printf("lookup: %llu differs from a search of each nuclide's grid\n", static_cast<unsigned long long>(number));
    return false;
  }
  std::printf("lookup: agrees with a search of each nuclide's grid\n");
  return true;
}

Data make_data(const Settings& settings, harness::Objects& objects) {
  const uint64_t energies = settings.nuclides * settings.gridpoints;
  NuclidePoint* nuclide_grid = NAMED_ARRAY(objects, NuclidePoint, "nuclide_grid", energies);
  const uint64_t row = sizeof(double) + settings.nuclides * sizeof(uint32_t);
  unsigned char* energy_grid = NAMED_ARRAY(objects, unsigned char, "energy_grid", energies * row);
  const Data data = {settings.nuclides,
                     settings.gridpoints,
                     energies,
                     nuclide_grid,
                     reinterpret_cast<double*>(energy_grid),
                     reinterpret_cast<uint32_t*>(energy_grid + energies * sizeof(double))};
  fill_nuclides(data);
  fill_energies(data);
  return data;
}

int run(const Settings& settings) {
  harness::Objects objects;
  const Data data = make_data(settings, objects);
  const Composition composition = compose(settings.nuclides);
  harness::Stopwatch kernel;
  uint64_t hashes = 0;
  for (uint64_t repeat = 0; repeat < settings.repeat; ++repeat) {
    kernel.start();
    hashes = look_up_all(data, composition, settings.lookups);
    kernel.stop();
    if (settings.laps) harness::print_lap();
  }
  std::printf("lookup: nuclides %llu gridpoints %llu checksum %016llx\n", static_cast<unsigned long long>(settings.nuclides),
              static_cast<unsigned long long>(settings.gridpoints), static_cast<unsigned long long>(hashes));
  if (settings.objects) objects.print();
  harness::print_measure("kernel_seconds", kernel.seconds());
  return !settings.check || agrees(data, composition, settings.lookups) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("lookup", "cross-sections of materials at random energies");
  options.count("--nuclides", &settings.nuclides, 1, 1 << 16, "nuclides; materials have as large a part of them as of 68");
  options.count("--gridpoints", &settings.gridpoints, 2, 1 << 24, "points in the grid of each nuclide");
  options.count("--lookups", &settings.lookups, 1, 1000000000000, "look-ups");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernel runs");
  options.flag("--laps", &settings.laps, "print the time at the end of each repetition");
  options.flag("--check", &settings.check, "compare 2000 look-ups with a search of each nuclide's grid");
  options.flag("--objects", &settings.objects, "print the name and the bytes of each object");
  options.parse(argc, argv);
  const std::string too_large = "--nuclides " + std::to_string(settings.nuclides) + " with --gridpoints " +
                                std::to_string(settings.gridpoints) + " need more memory than there is";
  return harness::with_threads(options, settings.threads, too_large, [&] { return run(settings); });
}
