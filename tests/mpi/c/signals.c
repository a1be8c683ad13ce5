/*
 * One rank gets a signal between two points; all ranks take a checkpoint at the next:
 *     signals STORE THREAD_LEVEL
 */
#include "check.h"
#include "standfast_mpi.h"
#include <signal.h>
#include <unistd.h>

enum { COUNT = 20000, POINTS = 30 };

static double field[COUNT];

/* Every rank is asked once, each at a point of its own. */
static int rank_asked_at(int at, int size)
{
    return at % 5 == 3 && at / 5 < size ? at / 5 : -1;
}

static void work(sf_job *job, int rank, int size)
{
    uint64_t expected = 0;
    for (int at = 0; at < POINTS; at++) {
        uint64_t version = 99;
        int asked = rank_asked_at(at, size);
        field[at] = at;
        if (asked == rank)
            kill(getpid(), SIGUSR1);
        OK(sf_point(job, &version));
        expected += asked >= 0;
        CHECK(version == (asked >= 0 ? expected : 0));
    }
    CHECK(expected == (uint64_t)size);
    OK(sf_wait(job, expected, SF_LEVEL_LOCAL));
}

int main(int argc, char **argv)
{
    char options[4096];
    int provided, rank, size;
    sf_job *job;
    CHECK(argc == 3);
    MPI_Init_thread(&argc, &argv,
                    strcmp(argv[2], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(options, sizeof options, "job=asked; lab.pool=4MiB; signal=USR1; store=%s", argv[1]);
    OK(sf_init_comm(MPI_COMM_WORLD, options, &job));
    OK(sf_protect_typed(job, "field", field, COUNT, SF_F64));
    work(job, rank, size);
    OK(sf_finalize(job));
    MPI_Finalize();
    return 0;
}
