/* Asks for checkpoints itself, where the library is, like setjmp. */
#define _GNU_SOURCE
#include <standfast_preload.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double *heap;

int main(int argc, char **argv) {
    int steps = atoi(argv[1]), crash_at = argc > 2 ? atoi(argv[2]) : -1, resumed = 0;
    size_t bytes = 8 << 20;
    unsigned char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    heap = calloc(100000, sizeof *heap);
    printf("begin\n");
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 100000; i++)
            heap[i] += step * 0.5 + i;
        for (size_t i = 0; i < bytes; i += 4096)
            mapped[i] += step;
        if (sf_checkpoint && step % 5 == 0) {
            int got = sf_checkpoint(NULL, 0, NULL);
            if (got < 0)
                return 3;
            resumed += got;
            if (got == 0 && sf_wait(NULL, 0, 0) != 0)
                return 4;
        }
        if (step == crash_at && !resumed)
            abort();
    }
    double sum = 0;
    for (int i = 0; i < 100000; i++)
        sum += heap[i];
    for (size_t i = 0; i < bytes; i += 4096)
        sum += mapped[i];
    fprintf(stderr, "resumed %d\n", resumed);
    printf("answer %.17g\n", sum);
    return 7;
}
