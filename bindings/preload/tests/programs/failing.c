/* Takes a checkpoint that cannot be written, and goes on. */
#define _GNU_SOURCE
#include <standfast_preload.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>

int main(void) {
#ifdef SHARED
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[0] = 1;
#endif
    if (sf_checkpoint(NULL, 0, NULL) != 0)
        return 3;
    if (sf_wait(NULL, 0, 0) >= 0)
        return 4;
    printf("answer\n");
    return 7;
}
