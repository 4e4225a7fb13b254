// ALLOCATE of flang where it calls its run-time library: with STAT=, SOURCE= or MOLD=, and for pointers.
//
// That library is linked into the program and calls malloc. isotherm-fc makes the linker redirect all calls of
// malloc in the program to this file (--wrap), and blocks for an ALLOCATE go to its site.
#include <stdbool.h>
#include <stddef.h>

#include "heap.h"

// The ALLOCATE that this thread executes. Part of the static thread-local storage, so that a read is one load.
static _Thread_local struct isotherm_site *current __attribute__((tls_model("initial-exec")));

void *__real_malloc(size_t bytes);
void *isotherm_malloc(size_t bytes, struct isotherm_site *site);

ISOTHERM_ENTRY void *__wrap_malloc(size_t bytes) {
    struct isotherm_site *site = current;
    if (!site)
        return __real_malloc(bytes);
    // The function that serves the site may call malloc as well.
    current = NULL;
    void *block = isotherm_malloc(bytes, site);
    current = site;
    return block;
}

// The library's functions take a description of the array, whether STAT= is there, a place for ERRMSG=, and
// their place in the source; with SOURCE=, another array second.
typedef int allocate(void *, bool, const void *, const char *, int);
typedef int allocate_from(void *, const void *, bool, const void *, const char *, int);
allocate _FortranAAllocatableAllocate, _FortranAPointerAllocate;
allocate_from _FortranAAllocatableAllocateSource, _FortranAPointerAllocateSource;

static int allocate_at(allocate *function, void *array, bool has_status, const void *message,
                       const char *file, int line, struct isotherm_site *site) {
    struct isotherm_site *outer = current;
    current = site;
    int status = function(array, has_status, message, file, line);
    current = outer;
    return status;
}

static int allocate_from_at(allocate_from *function, void *array, const void *source,
                            bool has_status, const void *message, const char *file, int line,
                            struct isotherm_site *site) {
    struct isotherm_site *outer = current;
    current = site;
    int status = function(array, source, has_status, message, file, line);
    current = outer;
    return status;
}

ISOTHERM_ENTRY int isotherm_fortran_allocate(void *array, bool has_status, const void *message,
                                             const char *file, int line,
                                             struct isotherm_site *site) {
    return allocate_at(_FortranAAllocatableAllocate, array, has_status, message, file, line, site);
}

ISOTHERM_ENTRY int isotherm_fortran_allocate_pointer(void *array, bool has_status,
                                                     const void *message, const char *file,
                                                     int line, struct isotherm_site *site) {
    return allocate_at(_FortranAPointerAllocate, array, has_status, message, file, line, site);
}

ISOTHERM_ENTRY int isotherm_fortran_allocate_from(void *array, const void *source, bool has_status,
                                                  const void *message, const char *file, int line,
                                                  struct isotherm_site *site) {
    return allocate_from_at(_FortranAAllocatableAllocateSource, array, source, has_status, message,
                            file, line, site);
}

ISOTHERM_ENTRY int isotherm_fortran_allocate_pointer_from(void *array, const void *source,
                                                          bool has_status, const void *message,
                                                          const char *file, int line,
                                                          struct isotherm_site *site) {
    return allocate_from_at(_FortranAPointerAllocateSource, array, source, has_status, message,
                            file, line, site);
}
