#include "heap.h"

#include <algorithm>
#include <cmath>

#include "hotspot.h"

namespace isotherm {

using Guard = std::lock_guard<std::mutex>;

size_t SiteKeyHash::operator()(const SiteKey &key) const {
    size_t hash = std::hash<std::string>()(key.klass);
    for (const auto &frame : key.frames) {
        hash = hash * 0x9e3779b97f4a7c15 + reinterpret_cast<size_t>(frame.first) + size_t(frame.second);
    }
    return hash;
}

bool Heap::create(const char *directory, uint64_t interval, bool counts_all) {
    if (!file_.create(directory)) return false;
    interval_ = interval;
    file_.header().interval_bytes = interval;
    file_.header().counts_all = counts_all;
    return true;
}

void Heap::set_range(uint64_t start, uint64_t end, uint32_t class_word_bytes) {
    Guard guard(lock_);
    file_.header().class_word_bytes = class_word_bytes;
    file_.header().heap_end = end;
    Published::store(file_.header().heap_start, start);
    if (file_.header().collections % 2 == 1) return;
    for (uint32_t slot = 0; slot < followed_.size(); slot++) {
        if (followed_[slot].reference) locate(slot);
    }
}

uint32_t Heap::find(const SiteKey &key) {
    Guard guard(lock_);
    auto found = sites_.find(key);
    return found == sites_.end() ? NONE : found->second;
}

uint32_t Heap::add(const SiteKey &key, const std::string &text) {
    Guard guard(lock_);
    auto found = sites_.find(key);
    if (found != sites_.end()) return found->second;
    Table &table = file_.header().sites;
    uint32_t number = uint32_t(table.used);
    if (table.used >= table.slots) return NONE;
    SiteRecord &record = file_.site(number);
    if (!file_.text(text, record.text, record.text_bytes)) return NONE;
    record.klass = class_numbers_.emplace(key.klass, uint32_t(class_numbers_.size())).first->second;
    Published::store(table.used, table.used + 1);
    sites_.emplace(key, number);
    sums_.push_back({0, 0, 0});
    return number;
}

double Heap::weight(uint64_t bytes) const {
    if (interval_ == 0 || bytes == 0) return 1;
    return 1 / -std::expm1(-double(bytes) / double(interval_));
}

bool Heap::allocated(const Sample &sample, jweak reference) {
    Guard guard(lock_);
    Header &header = file_.header();
    header.sampled++;
    SiteRecord &record = file_.site(sample.site);
    Sums &sums = sums_[sample.site];
    double bytes = sample.weight * double(sample.bytes);
    sums.allocations += sample.weight;
    sums.bytes += bytes;
    record.allocations = uint64_t(std::llround(sums.allocations));
    record.bytes = uint64_t(std::llround(sums.bytes));
    record.samples++;
    if (!reference && !header.counts_all) return false;
    if (header.counts_all) {
        sums.live += bytes;
        publish_live(sample.site);
        return true;
    }
    uint32_t slot = uint32_t(header.objects.used);
    if (!free_slots_.empty()) {
        slot = free_slots_.back();
        free_slots_.pop_back();
        followed_[slot] = {reference, sample.site, uint64_t(bytes)};
    } else if (header.objects.used < header.objects.slots) {
        followed_.push_back({reference, sample.site, uint64_t(bytes)});
    } else {
        header.dropped++;
        return false;
    }
    sums.live += double(uint64_t(bytes));
    publish_live(sample.site);
    ObjectRecord &object = file_.object(slot);
    object = {0, sample.bytes, sample.site, record.klass};
    if (slot == header.objects.used) Published::store(header.objects.used, header.objects.used + 1);
    // While a collection runs, the object may be moving; its end tells the place.
    if (header.collections % 2 == 0) locate(slot);
    Published::store(header.object_changes, header.object_changes + 1);
    return true;
}

void Heap::publish_live(uint32_t site) {
    SiteRecord &record = file_.site(site);
    record.live_bytes = uint64_t(std::llround(std::max(0.0, sums_[site].live)));
    record.peak_bytes = std::max(record.peak_bytes, record.live_bytes);
}

void Heap::locate(uint32_t slot) {
    ObjectRecord &object = file_.object(slot);
    uint64_t address = address_of(followed_[slot].reference);
    Published::store(object.address, address);
    learn_class(address, object.klass);
}

void Heap::learn_class(uint64_t address, uint32_t klass) {
    Header &header = file_.header();
    bool is_in_heap = address >= header.heap_start && address < header.heap_end;
    if (!is_in_heap || header.class_word_bytes == 0 || header.classes.used >= header.classes.slots) return;
    uint64_t word = class_word(address, header.class_word_bytes);
    if (!class_words_.emplace(word, klass).second) return;
    file_.klass(uint32_t(header.classes.used)) = {word, klass, 0};
    Published::store(header.classes.used, header.classes.used + 1);
}

void Heap::accessed(uint32_t site) {
    __atomic_fetch_add(&file_.site(site).accesses, 1, __ATOMIC_RELAXED);
}

void Heap::freed(uint32_t site, uint64_t bytes) {
    Guard guard(lock_);
    sums_[site].live -= double(bytes);
    publish_live(site);
}

size_t Heap::take_dead(jweak *into, size_t most) {
    Guard guard(lock_);
    size_t count = std::min(most, dead_.size());
    std::copy(dead_.end() - long(count), dead_.end(), into);
    dead_.resize(dead_.size() - count);
    return count;
}

void Heap::collection_begins() {
    Guard guard(lock_);
    Header &header = file_.header();
    began_ns_ = now_ns();
    if (header.collections % 2 == 0) Published::store(header.collections, header.collections + 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void Heap::collection_ends() {
    Guard guard(lock_);
    Header &header = file_.header();
    for (uint32_t slot = 0; slot < followed_.size(); slot++) {
        Followed &one = followed_[slot];
        if (!one.reference) continue;
        if (address_of(one.reference)) {
            locate(slot);
            continue;
        }
        sums_[one.site].live -= double(one.stands_for);
        publish_live(one.site);
        file_.object(slot).address = 0;
        dead_.push_back(one.reference);
        free_slots_.push_back(slot);
        one.reference = nullptr;
    }
    header.object_changes++;
    header.collection_ended_ns = now_ns();
    header.collecting_ns += header.collection_ended_ns - began_ns_;
    if (header.collections % 2 == 1) Published::store(header.collections, header.collections + 1);
}

void Heap::compiled(jmethodID method, const std::string &name, uint64_t start, uint64_t bytes) {
    Guard guard(lock_);
    Header &header = file_.header();
    if (header.methods.used >= header.methods.slots) return;
    uint32_t number = uint32_t(header.methods.used);
    MethodRecord &record = file_.method(number);
    if (!file_.text(name, record.text, record.text_bytes)) return;
    record.start = start;
    record.bytes = bytes;
    Published::store(header.methods.used, header.methods.used + 1);
    code_[start] = {number, method};
    if (++compiled_[method] == 1) header.compiled_methods++;
}

void Heap::unloaded(uint64_t start) {
    Guard guard(lock_);
    auto found = code_.find(start);
    if (found == code_.end()) return;
    Published::store(file_.method(found->second.first).bytes, 0);
    auto method = compiled_.find(found->second.second);
    if (method != compiled_.end() && --method->second == 0) {
        compiled_.erase(method);
        file_.header().compiled_methods--;
    }
    code_.erase(found);
}

}  // namespace isotherm
