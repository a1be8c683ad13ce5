/* malloc and its family: alignment, contents, limits, several threads, a forked child. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

/* Inside the range that the library gives to its arenas. */
static int is_ours(void *at) {
    return (uintptr_t)at >> 40 == 0x40;
}

static void *hammer(void *arg) {
    uint64_t state = (uintptr_t)arg + 1;
    unsigned char *kept[64] = {0};
    size_t sizes[64] = {0};
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int at = state >> 58;
        size_t size = 1 + (state >> 30) % 3000;
        if (kept[at])
            CHECK(kept[at][0] == (unsigned char)at && kept[at][sizes[at] - 1] == (unsigned char)at);
        kept[at] = i % 3 ? realloc(kept[at], size) : (free(kept[at]), malloc(size));
        memset(kept[at], at, size);
        sizes[at] = size;
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return NULL;
}

int main(void) {
    void *at = NULL;
    volatile size_t huge = SIZE_MAX / 2;
    char *text = malloc(100);
    CHECK(is_ours(text) && malloc_usable_size(text) >= 100);
    strcpy(text, "kept");
    text = realloc(text, 10 << 20);
    CHECK(!strcmp(text, "kept"));
    text = reallocarray(text, 3, 5);
    CHECK(!strcmp(text, "kept"));
    free(text);
    char *zeros = calloc(1000, 1000);
    for (int i = 0; i < 1000000; i++)
        CHECK(zeros[i] == 0);
    free(zeros);
    for (size_t align = 8; align <= 1 << 20; align *= 2) {
        CHECK(posix_memalign(&at, align, 100) == 0 && (uintptr_t)at % align == 0);
        free(at);
        at = aligned_alloc(align, align * 2);
        CHECK(at && (uintptr_t)at % align == 0);
        free(at);
        at = memalign(align, 33);
        CHECK(at && (uintptr_t)at % align == 0);
        free(at);
    }
    CHECK(posix_memalign(&at, 3, 100) == EINVAL);
    at = valloc(5);
    CHECK((uintptr_t)at % 4096 == 0);
    free(at);
    at = pvalloc(5);
    CHECK((uintptr_t)at % 4096 == 0 && malloc_usable_size(at) >= 4096);
    free(at);
    errno = 0;
    CHECK(malloc(huge) == NULL && errno == ENOMEM);
    CHECK(calloc(huge, 16) == NULL && reallocarray(NULL, huge, 16) == NULL);
    free(NULL);
    CHECK((at = malloc(0)) != NULL);
    free(at);
    CHECK(is_ours(strdup("x")));

    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, hammer, (void *)i);
    pid_t child = fork();
    if (child == 0) {
        hammer((void *)99);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
