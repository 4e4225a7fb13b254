#include "hotspot.h"

#include <cstring>
#include <dlfcn.h>
#include <initializer_list>

namespace isotherm {

namespace {

// A word that the machine exports by this name; 0 without one.
uint64_t exported(const char *name) {
    void *word = dlsym(RTLD_DEFAULT, name);
    return word ? *static_cast<uint64_t *>(word) : 0;
}

uint64_t word_at(const char *place) {
    uint64_t value;
    memcpy(&value, place, sizeof value);
    return value;
}

// The size of one of the machine's own types; 0 where it tells none.
uint64_t size_of(const char *type) {
    auto entry = reinterpret_cast<const char *>(exported("gHotSpotVMTypes"));
    uint64_t stride = exported("gHotSpotVMTypeEntryArrayStride"), name = exported("gHotSpotVMTypeEntryTypeNameOffset");
    if (!entry || !stride) return 0;
    for (; word_at(entry + name); entry += stride) {
        if (strcmp(reinterpret_cast<const char *>(word_at(entry + name)), type) == 0) {
            return word_at(entry + exported("gHotSpotVMTypeEntrySizeOffset"));
        }
    }
    return 0;
}

// The fields of the machine's own types.
class Fields {
public:
    Fields()
        : entries_(reinterpret_cast<const char *>(exported("gHotSpotVMStructs"))),
          stride_(exported("gHotSpotVMStructEntryArrayStride")),
          type_(exported("gHotSpotVMStructEntryTypeNameOffset")),
          field_(exported("gHotSpotVMStructEntryFieldNameOffset")),
          offset_(exported("gHotSpotVMStructEntryOffsetOffset")),
          address_(exported("gHotSpotVMStructEntryAddressOffset")) {}

    // Where a field is in its type; -1 without such a field.
    int64_t offset(const char *type, const char *field) const {
        const char *entry = find(type, field);
        return entry ? int64_t(word_at(entry + offset_)) : -1;
    }

    // The value of a static field of pointer type.
    uint64_t pointer(const char *type, const char *field) const {
        const char *entry = find(type, field);
        uint64_t place = entry ? word_at(entry + address_) : 0;
        return place ? *reinterpret_cast<uint64_t *>(place) : 0;
    }

private:
    const char *find(const char *type, const char *field) const {
        if (!entries_ || !stride_) return nullptr;
        for (const char *entry = entries_; word_at(entry + type_); entry += stride_) {
            auto name = [entry](uint64_t at) { return reinterpret_cast<const char *>(word_at(entry + at)); };
            const char *found = name(field_);
            if (found && strcmp(name(type_), type) == 0 && strcmp(found, field) == 0) return entry;
        }
        return nullptr;
    }

    const char *entries_;
    uint64_t stride_, type_, field_, offset_, address_;
};

// Whether one of these switches of the machine is on.
bool is_on(const Fields &fields, std::initializer_list<const char *> names) {
    auto flag = reinterpret_cast<const char *>(fields.pointer("JVMFlag", "flags"));
    uint64_t count = fields.pointer("JVMFlag", "numFlags"), size = size_of("JVMFlag");
    int64_t name = fields.offset("JVMFlag", "_name"), value = fields.offset("JVMFlag", "_addr");
    if (!flag || !size || name < 0 || value < 0) return false;
    for (; count > 0; count--, flag += size) {
        auto text = reinterpret_cast<const char *>(word_at(flag + name));
        auto place = reinterpret_cast<const bool *>(word_at(flag + value));
        for (const char *wanted : names) {
            if (text && place && strcmp(text, wanted) == 0 && *place) return true;
        }
    }
    return false;
}

}  // namespace

HeapRange heap_range() {
    Fields fields;
    if (!is_on(fields, {"UseG1GC", "UseParallelGC", "UseSerialGC"})) return {0, 0};
    uint64_t heap = fields.pointer("Universe", "_collectedHeap");
    int64_t reserved = fields.offset("CollectedHeap", "_reserved");
    int64_t start = fields.offset("MemRegion", "_start"), words = fields.offset("MemRegion", "_word_size");
    if (!heap || reserved < 0 || start < 0 || words < 0) return {0, 0};
    auto word = [&](int64_t offset) { return *reinterpret_cast<uint64_t *>(heap + uint64_t(reserved + offset)); };
    return {word(start), word(start) + word(words) * 8};
}

}  // namespace isotherm
