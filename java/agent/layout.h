// The file that the agent publishes, as crates/abi/src/java.rs describes it; both sides assert the offsets.

#ifndef ISOTHERM_JAVA_LAYOUT_H
#define ISOTHERM_JAVA_LAYOUT_H

#include <cstddef>
#include <cstdint>

namespace isotherm {

constexpr char MAGIC[8] = {'i', 's', 'o', 'j', 'a', 'v', 'a', 0};
constexpr uint32_t VERSION = 1;
constexpr size_t HEADER_BYTES = 4096;
constexpr uint64_t SITE_SLOTS = 1 << 16;
constexpr uint64_t OBJECT_SLOTS = 1 << 16;
constexpr uint64_t CLASS_SLOTS = 1 << 16;
constexpr uint64_t METHOD_SLOTS = 1 << 17;
constexpr uint64_t TEXT_BYTES = 32 << 20;
constexpr size_t TEXT_AT_MOST = 4096;

struct Table {
    uint64_t offset;
    uint64_t slots;
    uint64_t used;
};

struct Header {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    uint64_t interval_bytes;
    uint32_t class_word_bytes;
    uint32_t counts_all;
    uint64_t heap_start;
    uint64_t heap_end;
    Table sites;
    Table objects;
    Table classes;
    Table methods;
    Table text;
    uint64_t collections;
    uint64_t collection_ended_ns;
    uint64_t collecting_ns;
    uint64_t object_changes;
    uint64_t sampled;
    uint64_t dropped;
    uint64_t compiled_methods;
};

struct SiteRecord {
    uint32_t text;
    uint32_t text_bytes;
    uint32_t klass;
    uint32_t reserved;
    uint64_t allocations;
    uint64_t bytes;
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t samples;
    uint64_t accesses;
};

struct ObjectRecord {
    uint64_t address;
    uint64_t bytes;
    uint32_t site;
    uint32_t klass;
};

struct ClassRecord {
    uint64_t word;
    uint32_t klass;
    uint32_t reserved;
};

struct MethodRecord {
    uint64_t start;
    uint64_t bytes;
    uint32_t text;
    uint32_t text_bytes;
};

static_assert(sizeof(Header) == 224 && sizeof(Header) <= HEADER_BYTES);
static_assert(offsetof(Header, interval_bytes) == 16);
static_assert(offsetof(Header, heap_start) == 32);
static_assert(offsetof(Header, sites) == 48);
static_assert(offsetof(Header, text) == 144);
static_assert(offsetof(Header, collections) == 168);
static_assert(offsetof(Header, object_changes) == 192);
static_assert(offsetof(Header, compiled_methods) == 216);
static_assert(sizeof(SiteRecord) == 64 && offsetof(SiteRecord, allocations) == 16);
static_assert(offsetof(SiteRecord, accesses) == 56);
static_assert(sizeof(ObjectRecord) == 24 && offsetof(ObjectRecord, site) == 16);
static_assert(sizeof(ClassRecord) == 16 && offsetof(ClassRecord, klass) == 8);
static_assert(sizeof(MethodRecord) == 24 && offsetof(MethodRecord, text) == 16);

}  // namespace isotherm

#endif
