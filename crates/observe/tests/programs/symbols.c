/* Two functions whose call sites a test looks up by the addresses that `nm` and `objdump` would
 * give: it prints the offset of the return address of each call from the start of the module. */
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
