/*
 * A program that uses libstandfast, and has checkpoints of its whole where the preload library is:
 *     both STORE ALONE
 * With PLUGIN its work is a shared object for plugin.c.
 */
#include <standfast.h>
#include <standfast_preload.h>
#include <stdio.h>
#include <stdlib.h>

static double field[5000];

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, sf_last_error()); \
            return 1;                                                                 \
        }                                                                             \
    } while (0)

int work(const char *store, int alone) {
    char options[4096];
    sf_job *job;
    uint64_t version = 0;
    snprintf(options, sizeof options, "job=inner; memory=4MiB; store=%s", store);
    CHECK(sf_init(options, &job) == SF_OK);
    CHECK(sf_protect_typed(job, "field", field, 5000, SF_F64) == SF_OK);
    for (uint64_t step = 1; step <= 3; step++) {
        field[step] = step;
        CHECK(sf_checkpoint(job, SF_NEXT, &version) == SF_OK);
        CHECK(version == step);
        CHECK(sf_wait(job, version, SF_LEVEL_LOCAL) == SF_OK);
    }
    CHECK(sf_wait(job, 99, SF_LEVEL_LOCAL) == SF_MISSING);
    CHECK(sf_finalize(job) == SF_OK);
    CHECK(sf_checkpoint(job, SF_NEXT, NULL) == SF_INVALID);
    int whole = sf_checkpoint(NULL, SF_NEXT, NULL);
    CHECK(whole == (alone ? SF_INVALID : SF_OK));
    CHECK(sf_wait(NULL, 0, SF_LEVEL_LOCAL) == (alone ? SF_INVALID : SF_OK));
    printf("done\n");
    return 7;
}

#ifndef PLUGIN
int main(int argc, char **argv) {
    return argc == 3 ? work(argv[1], atoi(argv[2])) : 2;
}
#endif
