/* Opens a part of itself at run time, which has libstandfast for itself:  plugin STORE ALONE */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    void *part = dlopen("./part.so", RTLD_NOW | RTLD_LOCAL);
    int (*work)(const char *, int) = part ? (int (*)(const char *, int))dlsym(part, "work") : NULL;
    if (work == NULL || argc != 3) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return work(argv[1], atoi(argv[2]));
}
