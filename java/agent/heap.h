// Allocation sites, and the sampled objects that are alive.
//
// Sampled objects are held by weak references: the collector updates the word behind such a reference as it moves the object, and
// clears it as it drops the object. So at the end of each collection the words tell where every sampled object is, without a
// walk of the heap.
//
// The lock is taken in the callbacks at a collection's begin and end, while every Java thread stands still. A thread that holds it
// must therefore never call the virtual machine: the call would wait for the end of the collection, and that for the lock.

#ifndef ISOTHERM_JAVA_HEAP_H
#define ISOTHERM_JAVA_HEAP_H

#include <jvmti.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "published.h"

namespace isotherm {

// What tells sites apart before their names are known.
struct SiteKey {
    std::string klass;
    std::vector<std::pair<jmethodID, jlocation>> frames;
    bool operator==(const SiteKey &other) const { return klass == other.klass && frames == other.frames; }
};

struct SiteKeyHash {
    size_t operator()(const SiteKey &key) const;
};

// A sampled object.
struct Sample {
    uint32_t site;
    uint64_t bytes;
    // Objects for which it stands.
    double weight;
};

class Heap {
public:
    static constexpr uint32_t NONE = UINT32_MAX;

    bool create(const char *directory, uint64_t interval, bool counts_all);

    // Once the virtual machine runs.
    void set_range(uint64_t start, uint64_t end, uint32_t class_word_bytes);

    // The number of a known site; NONE without one.
    uint32_t find(const SiteKey &key);
    // Adds a site with its text; another thread may have added it meanwhile. NONE where there is no room.
    uint32_t add(const SiteKey &key, const std::string &text);

    // How many objects one of this size stands for, which was sampled with a chance that grows with its size:
    // 1 / (1 - exp(-bytes / interval)).
    double weight(uint64_t bytes) const;

    // Counts an allocation, and follows the object of a reference. False where there is no room to follow it.
    bool allocated(const Sample &sample, jweak reference);
    // Counts an access to an object, where all are counted, and the end of one.
    void accessed(uint32_t site);
    void freed(uint32_t site, uint64_t bytes);

    // References of dropped objects, to be deleted; up to a few at a time.
    size_t take_dead(jweak *into, size_t most);

    void collection_begins();
    void collection_ends();

    void compiled(jmethodID method, const std::string &name, uint64_t start, uint64_t bytes);
    void unloaded(uint64_t start);

private:
    struct Followed {
        jweak reference;
        uint32_t site;
        uint64_t stands_for;
    };
    struct Sums {
        double allocations, bytes, live;
    };

    void locate(uint32_t slot);
    void learn_class(uint64_t address, uint32_t klass);
    void publish_live(uint32_t site);

    std::mutex lock_;
    Published file_;
    uint64_t interval_ = 0;
    std::unordered_map<SiteKey, uint32_t, SiteKeyHash> sites_;
    std::unordered_map<std::string, uint32_t> class_numbers_;
    std::unordered_map<uint64_t, uint32_t> class_words_;
    std::vector<Sums> sums_;
    std::vector<Followed> followed_;
    std::vector<uint32_t> free_slots_;
    std::vector<jweak> dead_;
    std::unordered_map<uint64_t, std::pair<uint32_t, jmethodID>> code_;
    std::unordered_map<jmethodID, uint32_t> compiled_;
    uint64_t began_ns_ = 0;
};

}  // namespace isotherm

#endif
