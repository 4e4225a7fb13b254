// mmap, munmap, mremap, mprotect and madvise in every pattern that the pool handles itself, checked
// against a second copy of the contents.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096 };
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static void fill(char *area, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i += 512)
        *(uint32_t *)(area + i) = seed + i;
}

static int same(const char *area, size_t from, size_t bytes, unsigned seed) {
    for (size_t i = from; i < bytes; i += 512)
        if (*(const uint32_t *)(area + i) != seed + i)
            return 0;
    return 1;
}

static void check(const char *what, int good) { printf("%s: %s\n", what, good ? "good" : "WRONG"); }

static void growing(void) {
    char *area = mmap(NULL, 2 * MIB + PAGE, RW, ANON, -1, 0);
    fill(area, 2 * MIB + PAGE, 1);
    size_t bytes = 2 * MIB + PAGE;
    int good = 1;
    for (int i = 0; i < 12; i++) {
        char *blocker = i % 3 == 0 ? mmap(NULL, 2 * MIB, RW, ANON, -1, 0) : NULL;
        size_t larger = bytes + (i + 1) * 300 * 1024 / PAGE * PAGE;
        char *moved = mremap(area, bytes, larger, MREMAP_MAYMOVE);
        good &= moved != MAP_FAILED && same(moved, 0, bytes, 1);
        for (size_t j = bytes; j < larger; j++)
            good &= moved[j] == 0;
        fill(moved, larger, 1);
        area = moved;
        bytes = larger;
        if (blocker && i % 2)
            munmap(blocker, 2 * MIB);
    }
    check("grown contents", good);
    area = mremap(area, bytes, MIB, 0);
    check("shrunk contents", same(area, 0, MIB, 1));
    errno = 0;
    char *fixed = mmap(NULL, 4 * MIB, PROT_NONE, ANON, -1, 0);
    char *there = mremap(area, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, fixed);
    check("moved where wanted", there == fixed && same(there, 0, MIB, 1));
    munmap(fixed, 4 * MIB);
}

static void cutting(void) {
    char *area = mmap(NULL, 9 * MIB, RW, ANON, -1, 0);
    fill(area, 9 * MIB, 2);
    check("unmap the middle", munmap(area + 3 * MIB, 2 * MIB + PAGE) == 0);
    check("head stays", same(area, 0, 3 * MIB, 2));
    check("tail stays", same(area, 5 * MIB + PAGE, 9 * MIB, 2));
    check("unmap the head", munmap(area, PAGE) == 0 && same(area, PAGE, 3 * MIB, 2));
    errno = 0;
    check("an unmapped page is no memory", madvise(area + 4 * MIB, PAGE, 9999) == -1 && errno != 0);
    check("unmap over the hole", munmap(area, 9 * MIB) == 0);
    unsigned char core;
    (void)core;
    char *again = mmap(NULL, 9 * MIB, RW, ANON, -1, 0);
    int zero = 1;
    for (size_t i = 0; i < 9 * MIB; i += 256)
        zero &= again[i] == 0;
    check("mapped again reads as zero", zero);
    munmap(again, 9 * MIB);
}

static void protecting(void) {
    char *area = mmap(NULL, 4 * MIB, RW, ANON, -1, 0);
    fill(area, 4 * MIB, 3);
    check("mprotect", mprotect(area + MIB, MIB, PROT_READ) == 0 && same(area, 0, 4 * MIB, 3));
    check("unprotect", mprotect(area, 4 * MIB, RW) == 0);
    check("dontneed", madvise(area + MIB, MIB, MADV_DONTNEED) == 0 && area[MIB + 512] == 0 &&
                          same(area, 0, MIB, 3) && same(area, 2 * MIB, 4 * MIB, 3));
    check("hugepage", madvise(area, 4 * MIB, MADV_HUGEPAGE) == 0);
    char *file = mmap(area + 2 * MIB, MIB, RW, ANON | MAP_FIXED, -1, 0);
    check("replaced", file == area + 2 * MIB && file[0] == 0 && same(area, 3 * MIB, 4 * MIB, 3));
    munmap(area, 4 * MIB);
}

static void refusals(void) {
    errno = 0;
    check("length 0", mmap(NULL, 0, RW, ANON, -1, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    check("too long", mmap(NULL, SIZE_MAX - PAGE, RW, ANON, -1, 0) == MAP_FAILED && errno == ENOMEM);
    errno = 0;
    check("no file", mmap(NULL, MIB, RW, MAP_PRIVATE, 999, 0) == MAP_FAILED && errno == EBADF);
    char *area = mmap(NULL, 2 * MIB, RW, ANON, -1, 0);
    errno = 0;
    check("unaligned unmap", munmap(area + 1, PAGE) == -1 && errno == EINVAL);
    errno = 0;
    check("grow in place only", mremap(area, 2 * MIB, (size_t)1 << 46, 0) == MAP_FAILED && errno == ENOMEM);
    errno = 0;
    check("length 0 unmap", munmap(area, 0) == -1 && errno == EINVAL);
    munmap(area, 2 * MIB);
    errno = 0;
    check("what was unmapped", mremap(area, 2 * MIB, 4 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
}

int main(void) {
    growing();
    cutting();
    protecting();
    refusals();
    unsigned state = 7;
    char *areas[64] = {0};
    size_t sizes[64] = {0};
    int good = 1;
    for (int i = 0; i < 400; i++) {
        state = state * 1664525 + 1013904223;
        int slot = (state >> 8) % 64;
        if (areas[slot]) {
            good &= same(areas[slot], 0, sizes[slot], slot);
            munmap(areas[slot], sizes[slot]);
            areas[slot] = NULL;
        } else {
            sizes[slot] = (1 + (state >> 16) % 1200) * PAGE;
            areas[slot] = mmap(NULL, sizes[slot], RW, ANON | (i % 5 == 0 ? MAP_POPULATE : 0), -1, 0);
            fill(areas[slot], sizes[slot], slot);
        }
    }
    check("random mappings", good);
    return 0;
}
