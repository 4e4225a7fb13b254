/* Two functions whose call sites a test looks up: it prints the return address of one as an ELF
 * virtual address. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((noinline)) static void *here(void)
{
    return __builtin_return_address(0);
}

__attribute__((noinline)) void *first_caller(void)
{
    void *p = here();
    __asm__ volatile("");
    return p;
}

static int bias(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(uintptr_t *)out = info->dlpi_addr;
    return 1;
}

int main(void)
{
    uintptr_t base = 0;
    dl_iterate_phdr(bias, &base);
    printf("%lx\n", (unsigned long)((uintptr_t)first_caller() - base));
    return 0;
}
