// Queries the runtime, if there is one in the process, for the functions that serve a site.
#ifndef ISOTHERM_RESOLVE_H
#define ISOTHERM_RESOLVE_H

#include "isotherm_site.h"

#ifdef __cplusplus
extern "C" {
#endif

// The runtime's answer; routes of null where there is no runtime. `own_new` is null for a site of
// the C interface.
__attribute__((visibility("hidden"))) struct isotherm_routes
isotherm_ask_runtime(struct isotherm_site *site, void *own_new);

// Fills in the record of a context at its first use; other records stay.
__attribute__((visibility("hidden"))) void isotherm_fill_context(struct isotherm_site *site);

#ifdef __cplusplus
}
#endif

// An entry point: part of the module that is linked, never of what it exports.
#define ISOTHERM_ENTRY __attribute__((visibility("hidden")))

#endif
