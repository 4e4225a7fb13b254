/* A plugin of QEMU's user-mode emulation: counts every load and store that a program makes, by page of 4 KiB.
 *
 *   qemu-x86_64 -plugin tracer.so,from=ADDRESS,to=ADDRESS,out=FILE PROGRAM
 *
 * A load or store of more than 8 bytes comes from QEMU in parts and is counted once. Instructions from `from` to before `to` are the program's own; all others are libraries'. One line a page: its first
 * address, accesses by the program, bytes accessed by libraries. For programs of one thread.
 *
 * Debian packages no header of the interface, so the few functions of version 1 that are used are declared here
 * (QEMU, "TCG Plugins", docs/devel/tcg-plugins). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void translated_callback(uint64_t id, struct qemu_plugin_tb *block);
typedef void access_callback(unsigned cpu, uint32_t access, uint64_t address, void *data);
typedef void execute_callback(unsigned cpu, void *data);
typedef void exit_callback(uint64_t id, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_callback *callback);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, access_callback *callback, int registers,
                                      int direction, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction, execute_callback *callback, int registers,
                                            void *data);
void qemu_plugin_register_atexit_cb(uint64_t id, exit_callback *callback, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
unsigned qemu_plugin_mem_size_shift(uint32_t access);
bool qemu_plugin_mem_is_store(uint32_t access);

enum { NO_REGISTERS = 0, BOTH_DIRECTIONS = 3, PAGES = 1 << 16 };

EXPORTED int qemu_plugin_version = 1;

/* By page number plus 1 in an open-addressed table; 256 MiB fill it. */
static struct page {
    uint64_t name, by_program, library_bytes;
} pages[PAGES];
static uint64_t own_from, own_to, lost;
/* End address of the present instruction's last load and last store; 0 before the first. */
static uint64_t ends[2];
static const char *out;

static struct page *page_of(uint64_t address) {
    uint64_t name = (address >> 12) + 1;
    for (uint64_t probe = 0; probe < PAGES; probe++) {
        struct page *page = &pages[(name + probe) % PAGES];
        if (page->name == 0)
            page->name = name;
        if (page->name == name)
            return page;
    }
    return NULL;
}

static void executed(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    ends[0] = ends[1] = 0;
}

static void by_program(unsigned cpu, uint32_t access, uint64_t address, void *data) {
    (void)cpu, (void)data;
    uint64_t *end = &ends[qemu_plugin_mem_is_store(access)];
    bool is_part = *end == address;
    *end = address + (1u << qemu_plugin_mem_size_shift(access));
    if (is_part)
        return;
    struct page *page = page_of(address);
    if (page)
        page->by_program++;
    else
        lost++;
}

static void by_library(unsigned cpu, uint32_t access, uint64_t address, void *data) {
    (void)cpu, (void)data;
    struct page *page = page_of(address);
    if (page)
        page->library_bytes += 1u << qemu_plugin_mem_size_shift(access);
    else
        lost++;
}

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        uint64_t address = qemu_plugin_insn_vaddr(instruction);
        bool is_own = address >= own_from && address < own_to;
        if (is_own)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, NULL);
        qemu_plugin_register_vcpu_mem_cb(instruction, is_own ? by_program : by_library, NO_REGISTERS, BOTH_DIRECTIONS, NULL);
    }
}

static void finished(uint64_t id, void *data) {
    (void)id, (void)data;
    FILE *file = lost ? NULL : fopen(out, "w");
    for (size_t i = 0; file && i < PAGES; i++)
        if (pages[i].name)
            fprintf(file, "%llu %llu %llu\n", (unsigned long long)(pages[i].name - 1) << 12,
                    (unsigned long long)pages[i].by_program, (unsigned long long)pages[i].library_bytes);
    if (!file || fclose(file) != 0)
        fprintf(stderr, "tracer: %s was not written\n", out);
}

EXPORTED int qemu_plugin_install(uint64_t id, const void *info, int count, char **words) {
    (void)info;
    for (int i = 0; i < count; i++) {
        if (strncmp(words[i], "from=", 5) == 0)
            own_from = strtoull(words[i] + 5, NULL, 0);
        else if (strncmp(words[i], "to=", 3) == 0)
            own_to = strtoull(words[i] + 3, NULL, 0);
        else if (strncmp(words[i], "out=", 4) == 0)
            out = words[i] + 4;
    }
    if (!out || own_to <= own_from) {
        fprintf(stderr, "tracer: from=, to= and out= are needed\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
