/*
 * Two processes: "write STORE" takes checkpoints and is killed without a chance to clean up;
 * "read STORE" starts anew and gets everything back.
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { COUNT = 300000, ODD = 12345 };

static double field[COUNT];
static int32_t cells[COUNT];
static unsigned char raw[ODD + 1];
static uint64_t step;

static void set(uint64_t at)
{
    for (size_t i = 0; i < COUNT; i++) {
        field[i] = (double)(i * at) / 7.0;
        cells[i] = (int32_t)(i % 1000 * at);
    }
    for (size_t i = 0; i < ODD; i++)
        raw[i + 1] = (unsigned char)(i * i + at);
    step = at;
}

static int is(uint64_t at)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (field[i] != (double)(i * at) / 7.0 || cells[i] != (int32_t)(i % 1000 * at))
            return 0;
    }
    for (size_t i = 0; i < ODD; i++) {
        if (raw[i + 1] != (unsigned char)(i * i + at))
            return 0;
    }
    return step == at;
}

static void protect(sf_job *job)
{
    OK(sf_protect_typed(job, "field", field, COUNT, SF_F64));
    OK(sf_protect_typed(job, "cells", cells, COUNT, SF_I32));
    OK(sf_protect(job, "raw bytes, odd start", raw + 1, ODD));
    OK(sf_protect_typed(job, "Schritt \xc3\xa4", &step, 1, SF_U64));
}

static void write_and_die(const char *store)
{
    sf_job *job = open_job(store, "");
    protect(job);
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_MISSING, "no checkpoint yet");
    set(1);
    CHECK(take(job) == 1);
    set(2);
    CHECK(take(job) == 2);
    set(3);
    uint64_t version = 0;
    OK(sf_checkpoint(job, 30, &version));
    CHECK(version == 30);
    OK(sf_wait(job, 30, SF_LEVEL_LOCAL));
    set(4);
    raise(SIGKILL);
}

static void recover(sf_job *job)
{
    uint64_t bytes = 0, old_step = 0;
    OK(sf_region_bytes(job, 2, "raw bytes, odd start", &bytes));
    CHECK(bytes == ODD);
    unsigned char *copy = (unsigned char *)malloc(bytes);
    CHECK(copy != NULL);
    OK(sf_read_region(job, 2, "raw bytes, odd start", copy, bytes));
    for (size_t i = 0; i < ODD; i++)
        CHECK(copy[i] == (unsigned char)(i * i + 2));
    free(copy);
    OK(sf_read_region(job, 1, "Schritt \xc3\xa4", &old_step, sizeof old_step));
    CHECK(old_step == 1);
    CHECK(is(30 / 10));
}

static void read_back(const char *store)
{
    sf_job *job = open_job(store, "");
    protect(job);
    uint64_t restored = 0;
    OK(sf_restart(job, SF_NEWEST, &restored));
    CHECK(restored == 30);
    CHECK(is(3));
    recover(job);
    OK(sf_restart(job, 1, &restored));
    CHECK(restored == 1);
    CHECK(is(1));
    set(5);
    CHECK(take(job) == 31);
    OK(sf_finalize(job));
    CHECK(is(5));
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    if (strcmp(argv[1], "write") == 0)
        write_and_die(argv[2]);
    read_back(argv[2]);
    return 0;
}
