// The mapped file of this process, and the order in which its words are written.

#ifndef ISOTHERM_JAVA_PUBLISHED_H
#define ISOTHERM_JAVA_PUBLISHED_H

#include <string>

#include "layout.h"

namespace isotherm {

// The file. One writer at a time, which holds the lock of the heap's state (agent.cpp).
class Published {
public:
    // Makes the file in the session directory. False where it cannot be made: then the agent does nothing.
    bool create(const char *directory);

    Header &header() { return *at<Header>(0); }
    SiteRecord &site(uint32_t number) { return at<SiteRecord>(header().sites.offset)[number]; }
    ObjectRecord &object(uint32_t number) { return at<ObjectRecord>(header().objects.offset)[number]; }
    MethodRecord &method(uint32_t number) { return at<MethodRecord>(header().methods.offset)[number]; }
    ClassRecord &klass(uint32_t number) { return at<ClassRecord>(header().classes.offset)[number]; }

    // Appends a text. False where there is no room.
    bool text(const std::string &text, uint32_t &place, uint32_t &length);

    // Stores a word so that whoever reads it sees all that was written before.
    static void store(uint64_t &word, uint64_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }

private:
    template <typename T> T *at(uint64_t offset) { return reinterpret_cast<T *>(base_ + offset); }

    char *base_ = nullptr;
};

// Nanoseconds of CLOCK_MONOTONIC, which the samples have too.
uint64_t now_ns();

}  // namespace isotherm

#endif
