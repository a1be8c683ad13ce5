/*
 * A program for the job scripts here: steps of a tenth of a second, and a point after each, where
 * Standfast takes a checkpoint if one is wanted. Job, store, ring and global storage are settings.
 *
 *     steps STEPS
 *
 * Every rank checks after a restart that its memory is that of the step it comes back to.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <mpi.h>
#include <standfast_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT = 1 << 18 };

static int rank;
static uint64_t step;
static double field[COUNT];

static void die(const char *why)
{
    fprintf(stderr, "steps: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code)
{
    if (code != SF_OK)
        die(sf_last_error());
}

static double value(size_t at)
{
    return step * 1e-3 + at * (rank + 1.0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2)
        die("usage: steps STEPS");
    uint64_t steps = strtoull(argv[1], NULL, 10);

    sf_job *job;
    check(sf_init_comm(MPI_COMM_WORLD, NULL, &job));
    check(sf_protect_typed(job, "field", field, COUNT, SF_F64));
    check(sf_protect_typed(job, "step", &step, 1, SF_U64));
    int restarted = sf_restart(job, SF_NEWEST, NULL);
    if (restarted != SF_MISSING)
        check(restarted);
    for (size_t at = 0; step > 0 && at < COUNT; at++)
        if (field[at] != value(at))
            die("the memory is not that of this step");
    if (rank == 0)
        printf("from %" PRIu64 "\n", step);
    fflush(stdout);

    while (step < steps) {
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        step++;
        for (size_t at = 0; at < COUNT; at++)
            field[at] = value(at);
        check(sf_point(job, NULL));
    }
    if (rank == 0)
        printf("done %" PRIu64 "\n", step);
    check(sf_finalize(job));
    MPI_Finalize();
    return 0;
}
