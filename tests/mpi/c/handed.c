/*
 * What sf_init_comm does with communicators that it cannot use, with ranks that disagree, and
 * before and after MPI:  handed STORE
 */
#include "check.h"
#include "conform.h"

static int rank, size;

static void check_two_groups(void)
{
    sf_job *job;
    MPI_Comm half, between;
    int upper = rank >= size / 2;
    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 0, &between);
    FAILS(sf_init_comm(between, NULL, &job), SF_INVALID, "joins two groups");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* Whatever is wrong on one rank: all return, and each says whose fault it is. */
static void check_one_wrong_rank(void)
{
    sf_job *job = (sf_job *)&job;
    const char *options = rank == size - 1 ? "codek=lz4" : "codec=lz4";
    char culprit[64];
    snprintf(culprit, sizeof culprit, "rank %d cannot open the job", size - 1);
    FAILS(sf_init_comm(MPI_COMM_WORLD, options, &job), SF_INVALID,
          rank == size - 1 ? "no setting \"codek\"" : culprit);
    CHECK(job == NULL);
    FAILS(sf_init_comm(MPI_COMM_WORLD, NULL, rank == 0 ? NULL : &job), SF_INVALID,
          rank == 0 ? "job is NULL" : "rank 0 cannot open the job");
}

/* A job for each rank alone, through the whole of its life. */
static void check_alone(const char *store)
{
    char options[4096];
    double field[1000] = {1.5 + rank};
    uint64_t version = 0;
    MPI_Errhandler before, after;
    sf_job *job;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    snprintf(options, sizeof options, "job=rank%d; lab.pool=4MiB; store=%s", rank, store);
    OK(sf_init_comm_f(MPI_Comm_c2f(MPI_COMM_SELF), options, &job));
    OK(sf_protect_typed(job, "field", field, 1000, SF_F64));
    OK(sf_checkpoint(job, SF_NEXT, &version));
    OK(sf_wait(job, version, SF_LEVEL_LOCAL));
    field[0] = 0;
    OK(sf_restart(job, SF_NEWEST, NULL));
    CHECK(field[0] == 1.5 + rank);
    OK(sf_finalize(job));
    /* The program's own communicators are as they were. */
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &after);
    CHECK(before == after);
}

int main(int argc, char **argv)
{
    MPI_Comm world = MPI_COMM_WORLD;
    sf_job *job;
    CHECK(argc == 2);
    FAILS(sf_init_comm(MPI_COMM_WORLD, NULL, &job), SF_INVALID, "call MPI_Init first");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FAILS(sf_init_comm(MPI_COMM_NULL, NULL, &job), SF_INVALID, "MPI_COMM_NULL");
    check_two_groups();
    check_one_wrong_rank();
    check_alone(argv[1]);
    CHECK(standfast_test_keep(sf_mpi_table(), &world) == 0);
    MPI_Finalize();
    FAILS(sf_init_comm(MPI_COMM_WORLD, NULL, &job), SF_INVALID, "call sf_finalize before");
    CHECK(standfast_test_drop() == 0);
    return 0;
}
