/* Sites in the program, in a second translation unit, in a shared library and in one that is loaded
 * while the program runs. Prints the 2 MiB that hold the block of each: the runtime gives such a
 * chunk to one tier, so blocks of two tiers never share one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *other_file(size_t bytes);
void *in_library(size_t bytes);

static void *here(void) { return malloc(3001); }

int main(int count, char **words) {
    void *plugin = dlopen(count > 1 ? words[1] : "none", RTLD_NOW);
    void *(*in_plugin)(size_t) = plugin ? (void *(*)(size_t))dlsym(plugin, "in_plugin") : NULL;
    if (!in_plugin) {
        fprintf(stderr, "the plugin cannot be loaded: %s\n", dlerror());
        return 1;
    }
    void *blocks[] = {here(), other_file(3001), in_library(3001), in_plugin(3001)};
    const char *names[] = {"here", "other_file", "in_library", "in_plugin"};
    for (int i = 0; i < 4; ++i)
        printf("%s %lx\n", names[i], (unsigned long)blocks[i] >> 21);
    for (int i = 0; i < 4; ++i)
        free(blocks[i]);
    dlclose(plugin);
    return 0;
}
