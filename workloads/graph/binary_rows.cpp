#include "binary_rows.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "readers.hpp"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files have the order of memory");

namespace {

constexpr uint64_t kChunk = 1 << 16;  // numbers read at a time: memory grows with what is there

struct Header {
  unsigned char magic[8];
  uint64_t version;
  uint64_t vertex_count;
  uint64_t edge_count;
};
static_assert(sizeof(Header) == 32);

Header read_header(FILE* stream, const std::string& path) {
  Header header;
  if (std::fread(&header, sizeof header, 1, stream) != 1) {
    throw FileError(path + " is no binary CSR: it ends within the 32 bytes of the header");
  }
  if (std::memcmp(header.magic, kRowsMagic, sizeof kRowsMagic) != 0) {
    throw FileError(path + " is no binary CSR: its first 8 bytes are others");
  }
  if (header.version != kRowsVersion) {
    throw FileError(path + " is binary CSR of version " + std::to_string(header.version) +
                    ", and only version 1 is known");
  }
  if (header.vertex_count == 0 || header.vertex_count >= UINT32_MAX) {
    throw FileError(path + " states " + std::to_string(header.vertex_count) +
                    " vertices: wanted 1 to 4294967294");
  }
  return header;
}

/// Passes `count` numbers, in order and with their indices, to `take`. `end` says what a file that
/// ends early lacks.
template <typename Number, typename Take>
void read_numbers(FILE* stream, uint64_t count, const std::string& end, Take take) {
  std::vector<Number> chunk(std::min(count, kChunk));
  for (uint64_t begin = 0; begin < count; begin += kChunk) {
    const size_t wanted = std::min(count - begin, kChunk);
    if (std::fread(chunk.data(), sizeof(Number), wanted, stream) != wanted) throw FileError(end);
    for (size_t i = 0; i < wanted; ++i) take(begin + i, chunk[i]);
  }
}

std::vector<uint64_t> read_offsets(FILE* stream, const std::string& path, const Header& header) {
  std::vector<uint64_t> offsets;
  const auto take = [&](uint64_t index, uint64_t offset) {
    const bool last = index == header.vertex_count;
    const bool right = (index == 0 ? offset == 0 : offset >= offsets.back()) &&
                       (last ? offset == header.edge_count : offset <= header.edge_count);
    if (!right) {
      throw FileError(path + " offset " + std::to_string(index) + " is " + std::to_string(offset) +
                      ": offsets begin with 0, never descend and end with the number of arcs, " +
                      std::to_string(header.edge_count));
    }
    offsets.push_back(offset);
  };
  read_numbers<uint64_t>(stream, header.vertex_count + 1, path + " ends within its offsets", take);
  return offsets;
}

Growing read_targets(FILE* stream, const std::string& path, const Header& header,
                     const std::vector<uint64_t>& offsets) {
  Growing edges;
  uint32_t source = 0;
  const auto take = [&](uint64_t index, uint32_t target) {
    if (target >= header.vertex_count) {
      throw FileError(path + " target " + std::to_string(index) + " is " + std::to_string(target) +
                      ": the graph has " + std::to_string(header.vertex_count) + " vertices");
    }
    while (offsets[source + 1] <= index) ++source;
    edges.add({source, target});
  };
  read_numbers<uint32_t>(stream, header.edge_count, path + " ends within its targets", take);
  if (std::fgetc(stream) != EOF) throw FileError(path + " goes on behind its last target");
  return edges;
}

}  // namespace

Arcs read_rows(FILE* stream, const std::string& path) {
  const Header header = read_header(stream, path);
  const std::vector<uint64_t> offsets = read_offsets(stream, path, header);
  return {read_targets(stream, path, header, offsets), header.vertex_count};
}

void write_rows(const std::string& path, const Graph& graph) {
  Header header{{}, kRowsVersion, graph.vertex_count, graph.edge_count};
  std::memcpy(header.magic, kRowsMagic, sizeof kRowsMagic);
  FILE* stream = std::fopen(path.c_str(), "w");
  bool written = stream != nullptr && std::fwrite(&header, sizeof header, 1, stream) == 1 &&
                 std::fwrite(graph.out.offsets.get(), sizeof(uint64_t), graph.vertex_count + 1,
                             stream) == graph.vertex_count + 1 &&
                 std::fwrite(graph.out.targets.get(), sizeof(uint32_t), graph.edge_count,
                             stream) == graph.edge_count;
  int reason = errno;
  if (stream != nullptr && std::fclose(stream) != 0 && written) {
    written = false;
    reason = errno;
  }
  if (!written) throw FileError(path + " cannot be written: " + std::strerror(reason));
}
