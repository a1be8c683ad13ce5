/* Allocations of the job: made, grown and freed between checkpoints, and made again by name. */
#include "check.h"

#include <stdint.h>

enum { COUNT = 400000 };

static void fill(double *field, size_t count, double by)
{
    for (size_t i = 0; i < count; i++)
        field[i] = (double)i * by;
}

static int is(const double *field, size_t count, double by)
{
    for (size_t i = 0; i < count; i++) {
        if (field[i] != (double)i * by)
            return 0;
    }
    return 1;
}

static void write_all(const char *store, const char *settings)
{
    sf_job *job = open_job(store, settings);
    void *start = NULL;
    OK(sf_alloc_protected(job, "field", COUNT * sizeof(double), 8, &start));
    CHECK((uintptr_t)start % 4096 == 0);
    CHECK(((char *)start)[COUNT * sizeof(double) - 1] == 0);
    fill((double *)start, COUNT, 1.5);
    void *other = NULL;
    OK(sf_alloc_protected_aligned(job, "other", 1000, 0, 1 << 22, &other));
    CHECK((uintptr_t)other % (1 << 22) == 0);
    memset(other, 7, 1000);
    CHECK(take(job) == 1);

    /* Grown: the old part is kept, the new one is zero. */
    OK(sf_realloc_protected(job, "field", 2 * COUNT * sizeof(double), &start));
    CHECK(is((double *)start, COUNT, 1.5));
    CHECK(((double *)start)[COUNT] == 0.0);
    fill((double *)start, 2 * COUNT, 2.5);
    OK(sf_free_protected(job, "other"));
    FAILS(sf_free_protected(job, "other"), SF_MISSING, "other");
    CHECK(take(job) == 2);

    FAILS(sf_alloc_protected(job, "field", 10, 0, &start), SF_INVALID, "field");
    FAILS(sf_alloc_protected(job, "odd", 10, 3, &start), SF_INVALID, "element");
    FAILS(sf_alloc_protected(job, "odd", 10, -1, &start), SF_INVALID, "elem");
    FAILS(sf_alloc_protected(job, "odd", 10, 0, NULL), SF_INVALID, "out_start");
    FAILS(sf_alloc_protected_aligned(job, "odd", 10, 0, 3, &start), SF_INVALID, "alignment");
    FAILS(sf_alloc_protected(job, "much", SIZE_MAX / 4, 0, &start), SF_FULL, "memory");
    FAILS(sf_realloc_protected(job, "none", 10, &start), SF_MISSING, "none");
    FAILS(sf_find_protected(job, "other", NULL, NULL), SF_MISSING, "other");
    OK(sf_close(job));
}

static void read_all(const char *store, const char *settings)
{
    sf_job *job = open_job(store, settings);
    size_t count = 0, bytes = 0;
    uint64_t version = 0;
    void *start = NULL;
    OK(sf_alloc_from_checkpoint(job, 0, &count));
    CHECK(count == 1);
    OK(sf_restart(job, 0, &version));
    CHECK(version == 2);
    OK(sf_find_protected(job, "field", &start, &bytes));
    CHECK(bytes == 2 * COUNT * sizeof(double) && is((double *)start, 2 * COUNT, 2.5));

    /* Further back: another length, and one region more. */
    OK(sf_alloc_from_checkpoint(job, 1, &count));
    CHECK(count == 1);
    OK(sf_restart(job, 1, &version));
    OK(sf_find_protected(job, "field", &start, &bytes));
    CHECK(bytes == COUNT * sizeof(double) && is((double *)start, COUNT, 1.5));
    OK(sf_find_protected(job, "other", &start, &bytes));
    CHECK(bytes == 1000 && ((char *)start)[999] == 7);
    FAILS(sf_alloc_from_checkpoint(job, 99, &count), SF_MISSING, "99");
    OK(sf_finalize(job));
}

int main(int argc, char **argv)
{
    (void)argc;
    char store[4096];
    const char *settings[] = {"capture=stop", "capture=cow", "capture=staged"};
    for (int at = 0; at < 3; at++) {
        snprintf(store, sizeof store, "%s-%d", argv[1], at);
        write_all(store, settings[at]);
        read_all(store, settings[at]);
    }
    return 0;
}
