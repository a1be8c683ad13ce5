/* Threads that allocate, free each other's memory and wait for each other; thread-local state. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 3, BOXES = 64 };

static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *boxes[BOXES];
static uint64_t total;
static int steps;
static __thread uint64_t own;

static void *work(void *arg) {
    uint64_t number = (uint64_t)(uintptr_t)arg;
    own = number * 1000003;
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < BOXES; i++) {
            if ((uint64_t)i % THREADS != (number + step) % THREADS)
                continue;
            uint64_t before = boxes[i] ? boxes[i][3] : 0;
            free(boxes[i]);
            boxes[i] = malloc(64 + (own >> 20) % 4000);
            boxes[i][3] = before * 31 + own;
            own = own * 6364136223846793005u + 1442695040888963407u;
        }
        pthread_mutex_lock(&lock);
        total += own >> 8;
        pthread_mutex_unlock(&lock);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            printf("step %d\n", step);
            fflush(stdout);
        }
        usleep(2000);
        pthread_barrier_wait(&barrier);
    }
    return (void *)(uintptr_t)own;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    (void)argc;
    steps = atoi(argv[1]);
    pthread_barrier_init(&barrier, NULL, THREADS);
    printf("begin\n");
    fflush(stdout);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum = sum * 31 + (uint64_t)(uintptr_t)result;
    }
    for (int i = 0; i < BOXES; i++)
        sum = sum * 31 + boxes[i][3];
    printf("answer %llx %llx\n", (unsigned long long)sum, (unsigned long long)total);
    return 7;
}
