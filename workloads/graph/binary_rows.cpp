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

bool read_header(FILE* stream, const std::string& path, Header* header, std::string* error) {
  if (std::fread(header, sizeof *header, 1, stream) != 1) {
    *error = path + " is no binary CSR: it ends within the 32 bytes of the header";
  } else if (std::memcmp(header->magic, kRowsMagic, sizeof kRowsMagic) != 0) {
    *error = path + " is no binary CSR: its first 8 bytes are others";
  } else if (header->version != kRowsVersion) {
    *error = path + " is binary CSR of version " + std::to_string(header->version) +
             ", and only version 1 is known";
  } else if (header->vertex_count == 0 || header->vertex_count >= UINT32_MAX) {
    *error = path + " states " + std::to_string(header->vertex_count) +
             " vertices: wanted 1 to 4294967294";
  }
  return error->empty();
}

/// Passes `count` numbers, in order and with their indices, to `take`, which returns false at a
/// wrong one. False there and where the file ends early.
template <typename Number, typename Take>
bool read_numbers(FILE* stream, uint64_t count, Take take) {
  std::vector<Number> chunk(std::min(count, kChunk));
  for (uint64_t begin = 0; begin < count; begin += kChunk) {
    const size_t wanted = std::min(count - begin, kChunk);
    if (std::fread(chunk.data(), sizeof(Number), wanted, stream) != wanted) return false;
    for (size_t i = 0; i < wanted; ++i) {
      if (!take(begin + i, chunk[i])) return false;
    }
  }
  return true;
}

bool read_offsets(FILE* stream, const std::string& path, const Header& header,
                  std::vector<uint64_t>* offsets, std::string* error) {
  const bool complete =
      read_numbers<uint64_t>(stream, header.vertex_count + 1, [&](uint64_t index, uint64_t offset) {
        const bool last = index == header.vertex_count;
        const bool right = (index == 0 ? offset == 0 : offset >= offsets->back()) &&
                           (last ? offset == header.edge_count : offset <= header.edge_count);
        if (right) {
          offsets->push_back(offset);
        } else {
          *error = path + " offset " + std::to_string(index) + " is " + std::to_string(offset) +
                   ": offsets begin with 0, never descend and end with the number of arcs, " +
                   std::to_string(header.edge_count);
        }
        return right;
      });
  if (!complete && error->empty()) *error = path + " ends within its offsets";
  return complete;
}

bool read_targets(FILE* stream, const std::string& path, const Header& header,
                  const std::vector<uint64_t>& offsets, Growing* edges, std::string* error) {
  uint32_t source = 0;
  const bool complete =
      read_numbers<uint32_t>(stream, header.edge_count, [&](uint64_t index, uint32_t target) {
        while (offsets[source + 1] <= index) ++source;
        edges->add({source, target});
        if (target < header.vertex_count) return true;
        *error = path + " target " + std::to_string(index) + " is " + std::to_string(target) +
                 ": the graph has " + std::to_string(header.vertex_count) + " vertices";
        return false;
      });
  if (!complete && error->empty()) *error = path + " ends within its targets";
  if (complete && std::fgetc(stream) != EOF) *error = path + " goes on behind its last target";
  return error->empty();
}

}  // namespace

bool read_rows(FILE* stream, const std::string& path, Arcs* arcs, std::string* error) {
  Header header;
  std::vector<uint64_t> offsets;
  arcs->vertex_count = 0;
  if (!read_header(stream, path, &header, error) ||
      !read_offsets(stream, path, header, &offsets, error) ||
      !read_targets(stream, path, header, offsets, &arcs->edges, error)) {
    return false;
  }
  arcs->vertex_count = header.vertex_count;
  return true;
}

bool write_rows(const std::string& path, const Graph& graph, std::string* error) {
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
  if (!written) *error = path + " cannot be written: " + std::strerror(reason);
  return written;
}
