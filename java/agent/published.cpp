#include "published.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace isotherm {

uint64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return uint64_t(time.tv_sec) * 1000000000 + uint64_t(time.tv_nsec);
}

bool Published::create(const char *directory) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/java.%d", directory, int(getpid()));
    if (length <= 0 || size_t(length) >= sizeof path) return false;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return false;
    Header header{};
    uint64_t end = HEADER_BYTES;
    auto table = [&end](uint64_t slots, size_t record) {
        Table made{end, slots, 0};
        end += (slots * record + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES;
        return made;
    };
    header.version = VERSION;
    header.pid = uint32_t(getpid());
    header.sites = table(SITE_SLOTS, sizeof(SiteRecord));
    header.objects = table(OBJECT_SLOTS, sizeof(ObjectRecord));
    header.classes = table(CLASS_SLOTS, sizeof(ClassRecord));
    header.methods = table(METHOD_SLOTS, sizeof(MethodRecord));
    header.text = table(TEXT_BYTES, 1);
    // Pages that are not written take no memory.
    bool sized = ftruncate(file, off_t(end)) == 0;
    void *base = sized ? mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (base == MAP_FAILED) {
        unlink(path);
        return false;
    }
    base_ = static_cast<char *>(base);
    *at<Header>(0) = header;
    uint64_t magic;
    memcpy(&magic, MAGIC, sizeof magic);
    store(this->header().magic, magic);
    return true;
}

bool Published::text(const std::string &text, uint32_t &place, uint32_t &length) {
    Table &table = header().text;
    size_t bytes = std::min(text.size(), TEXT_AT_MOST);
    if (table.slots - table.used < bytes) return false;
    memcpy(at<char>(table.offset + table.used), text.data(), bytes);
    place = uint32_t(table.used);
    length = uint32_t(bytes);
    store(table.used, table.used + bytes);
    return true;
}

}  // namespace isotherm
