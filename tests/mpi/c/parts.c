/*
 * Two jobs at once, each of every other rank in reverse order; the last rank has no part in either:
 *     parts write|read STORE THREAD_LEVEL
 * "write" takes checkpoints, "read" starts anew and gets the last one back.
 */
#include "check.h"
#include "standfast_mpi.h"

enum { COUNT = 20000, LAST = 3 };

static double field[COUNT];
static uint64_t step;
static int rank, size;

/* Pages that all ranks have, pages that only this one has, and pages that change. */
static double value(size_t i, uint64_t at)
{
    if (i < COUNT / 2)
        return (double)i;
    return (double)(i * (size_t)(rank + 1)) + (i % 3 == 0 ? (double)at / 8 : 0);
}

static void set(uint64_t at)
{
    for (size_t i = 0; i < COUNT; i++)
        field[i] = value(i, at);
    step = at;
}

static void check_is(uint64_t at)
{
    CHECK(step == at);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(field[i] == value(i, at));
}

static void write_all(sf_job *job)
{
    uint64_t version = 0;
    CHECK(sf_restart(job, SF_NEWEST, NULL) == SF_MISSING);
    for (uint64_t at = 1; at <= LAST; at++) {
        set(at);
        OK(sf_checkpoint(job, SF_NEXT, &version));
        CHECK(version == at);
        /* Whoever changes memory now must not change the checkpoint. */
        set(at + 100);
    }
    OK(sf_wait(job, version, SF_LEVEL_LOCAL));
}

static void read_all(sf_job *job, uint32_t ranks)
{
    sf_checkpoint_info list[LAST];
    uint64_t version = 0;
    size_t count = 0;
    OK(sf_restart(job, SF_NEWEST, &version));
    CHECK(version == LAST);
    check_is(LAST);
    OK(sf_restart(job, 1, NULL));
    check_is(1);
    list[0].struct_bytes = sizeof list[0];
    OK(sf_list(job, list, LAST, &count));
    CHECK(count == LAST && list[0].version == LAST && list[0].ranks == ranks);
}

static void work(MPI_Comm part, const char *mode, const char *store)
{
    char options[4096];
    int ranks;
    uint32_t rank_there = 0, ranks_there = 0;
    sf_job *job;
    MPI_Comm_size(part, &ranks);
    snprintf(options, sizeof options, "job=part%d; lab.pool=4MiB; store=%s", rank % 2, store);
    OK(sf_init_comm(part, options, &job));
    OK(sf_rank(job, &rank_there, &ranks_there));
    /* The keys were negative: the order is reversed. */
    CHECK(ranks_there == (uint32_t)ranks && rank_there == ranks_there - 1 - (uint32_t)rank / 2);
    OK(sf_protect_typed(job, "field", field, COUNT, SF_F64));
    OK(sf_protect(job, "step", &step, sizeof step));
    if (strcmp(mode, "write") == 0)
        write_all(job);
    else
        read_all(job, ranks_there);
    OK(sf_close(job));
}

int main(int argc, char **argv)
{
    MPI_Comm part;
    int provided;
    CHECK(argc == 4);
    MPI_Init_thread(&argc, &argv,
                    strcmp(argv[3], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : rank % 2, -rank, &part);
    if (part != MPI_COMM_NULL) {
        work(part, argv[1], argv[2]);
        MPI_Comm_free(&part);
    }
    MPI_Finalize();
    return 0;
}
