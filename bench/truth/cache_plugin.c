/* A plugin of QEMU's user-mode emulation: models the caches of one processor and counts the misses of the last one, by
 * page of 4 KiB.
 *
 *   qemu-x86_64 -plugin cache_plugin.so,size=2097152,ways=16,line=64[,first=49152,first_ways=12][,prefetch=1][,out=FILE] PROGRAM
 *
 * Each cache is set-associative and drops the least recently used line of a set. Sets are chosen by the virtual address.
 * The last cache is asked only for lines that the first one misses. Without `first` it is asked for every line. Loads
 * and stores count alike: a store that misses fetches the line. Not modelled: code, and what the kernel reads and writes for
 * the program. All threads share the caches; forked children are left out.
 *
 * With `prefetch=1` there is a stream prefetcher in front of the last cache: once two lines of a page that follow each other were asked
 * for, the next ones in the same direction are there in time, up to the end of the page, and do not count as misses. So the misses
 * are those for which a program waits, as a processor counts loads that missed its last cache.
 *
 * With `out` it writes the totals and the misses by page at the end.
 *
 * In a program that `isotherm record --source instrumented --period 1` started, the misses are also added to the counts of
 * pages in the session file (crates/abi/src/accesses.rs), where a program that counts its own accesses adds those. The
 * recorder then attributes them to sites and chunks at each epoch, as it does with every other source.
 *
 * Debian packages no header of the interface, so the few functions of version 1 that are used are declared here
 * (QEMU, "TCG Plugins", docs/devel/tcg-plugins). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void translated_callback(uint64_t id, struct qemu_plugin_tb *block);
typedef void access_callback(unsigned cpu, uint32_t access, uint64_t address, void *data);
typedef void exit_callback(uint64_t id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_callback *callback);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, access_callback *callback, int registers,
                                      int direction, void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, exit_callback *callback, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
unsigned qemu_plugin_mem_size_shift(uint32_t access);

enum { NO_REGISTERS = 0, BOTH_DIRECTIONS = 3 };

EXPORTED int qemu_plugin_version = 1;

/* ---- the caches ---- */

struct cache {
    uint64_t sets, ways;
    /* By set: its lines plus 1, the most recently used first; 0 is free. */
    uint64_t *lines;
};

static struct cache first, last;
static unsigned line_shift;

/* True where the cache holds the line. In any case the line is its set's most recently used one afterwards. */
static bool hits(struct cache *cache, uint64_t line) {
    uint64_t *set = &cache->lines[(line & (cache->sets - 1)) * cache->ways];
    uint64_t name = line + 1;
    size_t place = 0;
    while (place < cache->ways - 1 && set[place] != name)
        place++;
    bool is_there = set[place] == name;
    memmove(set + 1, set, place * sizeof *set);
    set[0] = name;
    return is_there;
}

static bool make_cache(struct cache *cache, uint64_t bytes, uint64_t ways, const char *name) {
    uint64_t lines = bytes >> line_shift;
    cache->ways = ways;
    cache->sets = ways ? lines / ways : 0;
    if (ways == 0 || cache->sets == 0 || (cache->sets & (cache->sets - 1)) != 0 ||
        (cache->sets * ways) << line_shift != bytes) {
        fprintf(stderr, "cache_plugin: %s cache of %llu bytes: bytes must be ways times line times a power of two\n", name,
                (unsigned long long)bytes);
        return false;
    }
    cache->lines = calloc(lines, sizeof *cache->lines);
    return cache->lines != NULL;
}

/* ---- the prefetcher ---- */

enum { STREAMS = 32, TRAINED = 2 };

/* Streams in pages of their own, the one that was followed last first. */
static struct stream {
    /* Page number plus 1; 0 is free. */
    uint64_t page;
    uint64_t line;
    /* 1 or -1: the direction of the last step. */
    int64_t step;
    /* Lines that have followed each other. */
    unsigned length;
} streams[STREAMS];
static uint64_t prefetches;

enum { PAGE_SHIFT = 12 };

/* True where the line continues a stream that has run for long enough to be fetched ahead. Follows the stream. */
static bool is_ahead(uint64_t line) {
    uint64_t page = (line >> (PAGE_SHIFT - line_shift)) + 1;
    size_t place = 0;
    while (place < STREAMS - 1 && streams[place].page != page)
        place++;
    struct stream stream = streams[place];
    if (stream.page != page) {
        stream = (struct stream){.page = page, .line = line, .length = 1};
    } else if (line != stream.line) {
        int64_t step = (int64_t)(line - stream.line);
        bool is_next = (step == 1 || step == -1) && (step == stream.step || stream.length == 1);
        stream = (struct stream){.page = page, .line = line, .step = step, .length = is_next ? stream.length + 1 : 1};
    }
    memmove(streams + 1, streams, place * sizeof *streams);
    streams[0] = stream;
    return stream.length > TRAINED;
}

/* ---- the session file ---- */

/* The end of the file's header: struct AccessTable of crates/abi/src/accesses.rs. */
struct access_table {
    uint64_t period, slots, regions_offset, counts_offset;
};

enum { REGION_PAGES = 1 << 12, HEADER_BYTES_OFFSET = 12 };

static struct {
    const char *folder;
    char *base;
    struct access_table table;
} session;

/* The path of the session file that this process has mapped, which is the runtime's; false before there is one. */
static bool mapped_session(char *path, size_t room) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char text[4352];
    bool is_found = false;
    while (maps && !is_found && fgets(text, sizeof text, maps)) {
        char *name = strchr(text, '/');
        size_t length = strlen(session.folder);
        if (!name || strncmp(name, session.folder, length) != 0 || name[length] != '/')
            continue;
        unsigned long pid, image;
        is_found = sscanf(name + length + 1, "%lu.%lu", &pid, &image) == 2;
        snprintf(path, room, "%.*s", (int)strcspn(name, " \n"), name);
    }
    if (maps)
        fclose(maps);
    return is_found;
}

/* Maps the session file, if the runtime has made and filled it by now. */
static void open_session(void) {
    char path[4352];
    if (session.base || !session.folder || !mapped_session(path, sizeof path))
        return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        return;
    char *base = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (base == MAP_FAILED)
        return;
    uint32_t header_bytes;
    memcpy(&header_bytes, base + HEADER_BYTES_OFFSET, sizeof header_bytes);
    struct access_table *table = &session.table;
    if (memcmp(base, "ISOTHERM", 8) == 0 && header_bytes > sizeof *table)
        memcpy(table, base + header_bytes - sizeof *table, sizeof *table);
    uint64_t end = table->counts_offset + table->slots * REGION_PAGES * sizeof(uint64_t);
    if (table->period != 1 || table->slots == 0 || end > (uint64_t)status.st_size) {
        munmap(base, (size_t)status.st_size);
        return;
    }
    session.base = base;
}

/* The count of a page in the session file; NULL where it has no room. */
static uint64_t *session_count(uint64_t page) {
    uint64_t region = page / REGION_PAGES, name = region + 1, begin = (region * 0x9e3779b97f4a7c15u) >> 32;
    uint64_t *regions = (uint64_t *)(session.base + session.table.regions_offset);
    uint64_t *counts = (uint64_t *)(session.base + session.table.counts_offset);
    for (uint64_t probe = 0; probe < session.table.slots; probe++) {
        uint64_t slot = (begin + probe) & (session.table.slots - 1), owner = 0;
        if (__atomic_compare_exchange_n(&regions[slot], &owner, name, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || owner == name)
            return &counts[slot * REGION_PAGES + page % REGION_PAGES];
    }
    return NULL;
}

/* ---- the pages ---- */

struct page {
    /* Page number plus 1; 0 is free. */
    uint64_t name;
    uint64_t misses;
    /* Of these, those that are in the session file. */
    uint64_t recorded;
    uint64_t *count;
};

static struct page *pages;
static uint64_t page_slots = 1 << 12, pages_used;

static struct page *find_page(uint64_t name) {
    uint64_t slot = (name * 0x9e3779b97f4a7c15u) >> 32;
    while (pages[slot & (page_slots - 1)].name != 0 && pages[slot & (page_slots - 1)].name != name)
        slot++;
    return &pages[slot & (page_slots - 1)];
}

static void grow_pages(void) {
    struct page *old = pages;
    uint64_t old_slots = page_slots;
    page_slots *= 2;
    pages = calloc(page_slots, sizeof *pages);
    if (!pages) {
        fprintf(stderr, "cache_plugin: no memory for %llu pages\n", (unsigned long long)page_slots);
        exit(1);
    }
    for (uint64_t slot = 0; slot < old_slots; slot++)
        if (old[slot].name)
            *find_page(old[slot].name) = old[slot];
    free(old);
}

static void record_page(struct page *page) {
    if (session.base && !page->count)
        page->count = session_count(page->name - 1);
    if (page->count) {
        __atomic_fetch_add(page->count, page->misses - page->recorded, __ATOMIC_RELAXED);
        page->recorded = page->misses;
    }
}

static void count_miss(uint64_t address) {
    uint64_t name = (address >> PAGE_SHIFT) + 1;
    struct page *page = find_page(name);
    if (!page->name) {
        if (pages_used >= page_slots / 2) {
            grow_pages();
            page = find_page(name);
        }
        page->name = name;
        pages_used++;
    }
    page->misses++;
    record_page(page);
}

/* ---- the callbacks ---- */

/* Misses between two searches for the session file, which begins when the runtime does. */
enum { SEARCH_PERIOD = 1024 };

static pthread_spinlock_t lock;
static uint64_t accesses, first_misses, misses;
static const char *out;
/* True in a forked child, whose accesses are not the program's. */
static bool is_child;

static void access_line(uint64_t line) {
    accesses++;
    if (first.lines && hits(&first, line))
        return;
    first_misses++;
    bool is_prefetched = prefetches && is_ahead(line);
    if (hits(&last, line) || is_prefetched)
        return;
    if (misses++ % SEARCH_PERIOD == 0)
        open_session();
    count_miss(line << line_shift);
}

static void accessed(unsigned cpu, uint32_t access, uint64_t address, void *data) {
    (void)cpu, (void)data;
    if (is_child)
        return;
    uint64_t begin = address >> line_shift;
    uint64_t end = (address + (1u << qemu_plugin_mem_size_shift(access)) - 1) >> line_shift;
    pthread_spin_lock(&lock);
    for (uint64_t line = begin; line <= end; line++)
        access_line(line);
    pthread_spin_unlock(&lock);
}

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), accessed, NO_REGISTERS, BOTH_DIRECTIONS, NULL);
}

static void finished(uint64_t id, void *data) {
    (void)id, (void)data;
    if (is_child)
        return;
    pthread_spin_lock(&lock);
    open_session();
    uint64_t recorded = 0;
    FILE *file = out ? fopen(out, "we") : NULL;
    for (uint64_t slot = 0; slot < page_slots; slot++)
        if (pages[slot].name) {
            record_page(&pages[slot]);
            recorded += pages[slot].recorded;
            if (file)
                fprintf(file, "page %llu %llu\n", (unsigned long long)(pages[slot].name - 1) << PAGE_SHIFT,
                        (unsigned long long)pages[slot].misses);
        }
    if (file)
        fprintf(file, "accesses %llu\nfirst_misses %llu\nmisses %llu\nrecorded %llu\n", (unsigned long long)accesses,
                (unsigned long long)first_misses, (unsigned long long)misses, (unsigned long long)recorded);
    if (out && (!file || fclose(file) != 0))
        fprintf(stderr, "cache_plugin: %s was not written: %s\n", out, strerror(errno));
    if (session.folder && recorded != misses)
        fprintf(stderr, "cache_plugin: %llu of %llu misses were recorded; was the program started by isotherm record "
                "--source instrumented --period 1?\n", (unsigned long long)recorded, (unsigned long long)misses);
    pthread_spin_unlock(&lock);
}

static void forked(void) {
    is_child = true;
}

EXPORTED int qemu_plugin_install(uint64_t id, const void *info, int count, char **words) {
    (void)info;
    uint64_t size = 0, ways = 0, line = 64, first_size = 0, first_ways = 0;
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {{"size=", &size}, {"ways=", &ways}, {"line=", &line}, {"first=", &first_size}, {"first_ways=", &first_ways},
                 {"prefetch=", &prefetches}};
    for (int i = 0; i < count; i++) {
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            if (strncmp(words[i], numbers[n].name, strlen(numbers[n].name)) == 0)
                *numbers[n].value = strtoull(words[i] + strlen(numbers[n].name), NULL, 0);
        if (strncmp(words[i], "out=", 4) == 0)
            out = strdup(words[i] + 4);
    }
    if (line == 0 || (line & (line - 1)) != 0) {
        fprintf(stderr, "cache_plugin: line=%llu: must be a power of two\n", (unsigned long long)line);
        return 1;
    }
    line_shift = (unsigned)__builtin_ctzll(line);
    pages = calloc(page_slots, sizeof *pages);
    if (!pages || !make_cache(&last, size, ways, "last") || (first_size && !make_cache(&first, first_size, first_ways, "first")))
        return 1;
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    pthread_atfork(NULL, NULL, forked);
    session.folder = getenv("ISOTHERM_SESSION");
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
