/*
 * A square plate, hot at its upper edge and cold at the others. In every step each inner point
 * takes the mean of its four neighbours, and so the heat spreads.
 *
 * Every rank has a strip of rows, between a row of its neighbour above and one of that below.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <standfast_mpi.h>

static int rank, size;

static void die(const char *why)
{
    fprintf(stderr, "heat: rank %d: %s\n", rank, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code)
{
    if (code != SF_OK)
        die(sf_last_error());
}

/* Brings the rows of the neighbours up to date. */
static void exchange(double *plate, size_t n, size_t rows)
{
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(plate + n, n, MPI_DOUBLE, above, 0, plate + (rows + 1) * n, n, MPI_DOUBLE, below, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(plate + rows * n, n, MPI_DOUBLE, below, 0, plate, n, MPI_DOUBLE, above, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void spread(double *plate, double *next, size_t n, size_t rows)
{
    exchange(plate, n, rows);
    for (size_t row = 1; row <= rows; row++) {
        for (size_t column = 1; column < n - 1; column++) {
            double *here = plate + row * n + column;
            next[row * n + column] = 0.25 * (*(here - n) + *(here + n) + *(here - 1) + *(here + 1));
        }
    }
    memcpy(plate + n, next + n, rows * n * sizeof *plate);
}

/* The strips behind each other, in one file. */
static void save(const double *plate, size_t n, size_t rows, const char *path)
{
    for (int turn = 0; turn < size; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn != rank)
            continue;
        /* The first rank also has the upper edge, the last one the lower. */
        const double *start = rank == 0 ? plate : plate + n;
        size_t count = (rows + (rank == 0) + (rank == size - 1)) * n;
        FILE *file = fopen(path, rank == 0 ? "wb" : "ab");
        if (!file || fwrite(start, sizeof *start, count, file) != count || fclose(file) != 0)
            die("cannot write the output");
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5)
        die("usage: heat N STEPS EVERY OUTPUT");
    size_t n = strtoull(argv[1], NULL, 10);
    uint64_t steps = strtoull(argv[2], NULL, 10);
    uint64_t every = strtoull(argv[3], NULL, 10);
    if (n < (size_t)size + 2 || every < 1)
        die("N must be at least the number of ranks + 2, and EVERY at least 1");

    size_t rows = (n - 2) * (rank + 1) / size - (n - 2) * rank / size;
    double *plate = calloc((rows + 2) * n, sizeof *plate);
    double *next = calloc((rows + 2) * n, sizeof *next);
    uint64_t step = 0;
    if (!plate || !next)
        die("no memory");
    for (size_t column = 0; rank == 0 && column < n; column++)
        plate[column] = 100.0;

    sf_job *job;
    check(sf_init_comm(MPI_COMM_WORLD, NULL, &job));
    check(sf_protect_typed(job, "plate", plate, (rows + 2) * n, SF_F64));
    check(sf_protect_typed(job, "step", &step, 1, SF_U64));
    int restarted = sf_restart(job, SF_NEWEST, NULL);
    if (restarted != SF_MISSING) {
        check(restarted);
        if (rank == 0)
            printf("goes on from step %" PRIu64 "\n", step);
    }

    while (step < steps) {
        spread(plate, next, n, rows);
        step++;
        check(sf_point(job, NULL));
        if (step % every == 0) {
            if (rank == 0)
                printf("step %" PRIu64 ": %.9f degrees inside\n", step, plate[n + n / 2]);
        }
    }
    save(plate, n, rows, argv[4]);
    check(sf_finalize(job));
    free(plate);
    free(next);
    MPI_Finalize();
    return 0;
}
