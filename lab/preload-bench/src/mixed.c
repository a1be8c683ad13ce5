/* Threads that allocate and free blocks of mixed sizes, some of them of each other. Prints the
 * seconds that the work took. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS_MAX = 64, SLOTS = 1024, SHARED = 4096 };

static _Atomic(char *) shared[SHARED];
static long rounds;

static size_t size_of(uint64_t random) {
    unsigned kind = random & 31;
    if (kind < 22)
        return 16 + (random >> 8) % 112;
    if (kind < 30)
        return 128 + (random >> 8) % 1920;
    return 2048 + (random >> 8) % 30720;
}

static void *work(void *arg) {
    uint64_t state = (uint64_t)(uintptr_t)arg * 0x9e3779b97f4a7c15u + 1;
    char *own[SLOTS] = {0};
    for (long i = 0; i < rounds; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char *block = malloc(size_of(state >> 20));
        block[0] = (char)i;
        char **slot = &own[(state >> 8) % SLOTS];
        char *old = *slot;
        *slot = block;
        if ((state & 7) == 0)
            old = atomic_exchange(&shared[(state >> 40) % SHARED], old);
        free(old);
    }
    for (int i = 0; i < SLOTS; i++)
        free(own[i]);
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t all[THREADS_MAX];
    struct timespec begin, end;
    rounds = argc > 2 ? atol(argv[2]) : 2000000;
    if (threads < 1 || threads > THREADS_MAX)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
        pthread_create(&all[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n", (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    return 0;
}
