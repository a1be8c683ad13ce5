/* Takes a checkpoint that cannot be written, and goes on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <standfast_preload.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef FILES
/* Not even begun: the call itself fails. */
static const int called = -1;

static int open_many(void) {
    struct rlimit limit = {FILES + 100, FILES + 100};
    int file = open("/proc/self/exe", O_RDONLY);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    for (int i = 1; i < FILES && file >= 0; i++)
        file = dup(file);
    return file;
}
#else
static const int called = 0;
#endif

int main(void) {
#ifdef SHARED
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[0] = 1;
#endif
#ifdef FILES
    if (open_many() < 0)
        return 5;
#endif
    int code = sf_checkpoint(NULL, 0, NULL);
    if ((code < 0) != (called < 0))
        return 3;
    if (code == 0 && sf_wait(NULL, 0, 0) >= 0)
        return 4;
    printf("answer\n");
    return 7;
}
