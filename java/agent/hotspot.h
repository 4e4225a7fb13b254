// Facts of HotSpot that its own debugging interface (`gHotSpotVMStructs`, which jhsdb reads) tells.

#ifndef ISOTHERM_JAVA_HOTSPOT_H
#define ISOTHERM_JAVA_HOTSPOT_H

#include <jni.h>

#include <cstdint>

namespace isotherm {

struct HeapRange {
    uint64_t start;
    uint64_t end;
};

// The addresses that are reserved for the heap; two zeros where another machine or version does not tell, and for collectors
// whose references are no plain addresses.
HeapRange heap_range();

// The present address of the object of a reference. The machine updates the word behind it at each collection. Right for
// collectors whose references are plain addresses: Serial, Parallel, G1.
inline uint64_t address_of(jobject reference) {
    uintptr_t word = reinterpret_cast<uintptr_t>(reference) & ~uintptr_t(7);
    return word ? __atomic_load_n(reinterpret_cast<uint64_t *>(word), __ATOMIC_RELAXED) : 0;
}

// Bytes of the word behind the first eight of an object that stands for its class, read from one without fields: the other
// half of a compressed one is empty there.
inline uint32_t class_word_bytes(uint64_t plain_object) {
    uint64_t word = *reinterpret_cast<uint64_t *>(plain_object + 8);
    return word >> 32 ? 8 : 4;
}

// That word of an object.
inline uint64_t class_word(uint64_t object, uint32_t bytes) {
    return bytes == 4 ? *reinterpret_cast<uint32_t *>(object + 8) : *reinterpret_cast<uint64_t *>(object + 8);
}

}  // namespace isotherm

#endif
