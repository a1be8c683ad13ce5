/*
 * The solver of `make demo`: a plate at room temperature, and a laser that goes round on it.
 * The warmer the metal, the better it conducts: every rank has the same table of that.
 *
 * Every rank has a strip of rows, between a row of its neighbour above and one of that below.
 * Name, stores, ring, agents and global storage are settings: nothing here knows of them.
 *
 * Rank 0 tells on its output what happens, a line each:
 *     started STEP VERSION     the state is ready; VERSION is 0 at the beginning
 *     note TEXT                a line of the report of the restart
 *     step STEP                so many steps are done
 *     checkpoint VERSION STEP  the call has returned; the program goes on
 *     finished STEPS SECONDS   the answer is written; steps that were computed here
 */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <standfast_mpi.h>

#define TABLE (1 << 18)
#define HOT 1000.0
#define COOL 20.0

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

/* What is the same for all steps. */
struct strip {
    size_t n, first, rows;
    double *plate, *table, *next;
    uint64_t steps;
};

static void fill(struct strip *strip)
{
    for (size_t at = 0; at < (strip->rows + 2) * strip->n; at++)
        strip->plate[at] = COOL;
    for (size_t at = 0; at < TABLE; at++)
        strip->table[at] = 0.12 + 0.1 * sin(at * (1.5 / TABLE)) * cos(at * 1e-3) * cos(at * 1e-3);
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

/* One step in time; the rim of the plate stays cool. */
static void spread(struct strip *strip)
{
    size_t n = strip->n;
    exchange(strip->plate, n, strip->rows);
    for (size_t row = 1; row <= strip->rows; row++) {
        for (size_t column = 1; column < n - 1; column++) {
            const double *here = strip->plate + row * n + column;
            double around = *(here - n) + *(here + n) + *(here - 1) + *(here + 1);
            double conducts = strip->table[(size_t)(*here * ((TABLE - 1) / HOT))];
            strip->next[row * n + column] = *here + conducts * (around - 4 * *here);
        }
        strip->next[row * n] = strip->next[row * n + n - 1] = COOL;
    }
    memcpy(strip->plate + n, strip->next + n, strip->rows * n * sizeof *strip->plate);
}

/* The laser heats what of its spot lies in this strip. */
static void shine(struct strip *strip, uint64_t step)
{
    double n = strip->n, angle = 6.283185307179586 * step / strip->steps;
    double x = n * (0.5 + 0.3 * cos(angle)), y = n * (0.5 + 0.3 * sin(angle)), radius = n / 40;
    for (size_t row = 1; row <= strip->rows; row++) {
        double dy = strip->first + row - y;
        for (size_t column = x - radius; dy * dy <= radius * radius && column <= x + radius; column++) {
            double dx = column - x;
            if (dx * dx + dy * dy <= radius * radius)
                strip->plate[row * strip->n + column] = HOT;
        }
    }
}

/* The strips behind each other, in one file. */
static void save(const struct strip *strip, const char *path)
{
    for (int turn = 0; turn < size; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn != rank)
            continue;
        size_t count = strip->rows * strip->n;
        FILE *file = fopen(path, rank == 0 ? "wb" : "ab");
        if (!file || fwrite(strip->plate + strip->n, sizeof(double), count, file) != count ||
            fclose(file) != 0)
            die("cannot write the output");
    }
}

/* What the restart says of itself. */
static void tell_restart(sf_job *job)
{
    char text[4096];
    check(sf_restart_report(job, text, sizeof text, NULL));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        printf("note %s\n", line);
}

/* Goes on from the newest checkpoint of any level, or begins. */
static void start(sf_job *job, struct strip *strip, const uint64_t *step)
{
    uint64_t version = 0;
    int restarted = sf_restart(job, SF_NEWEST, &version);
    if (restarted == SF_MISSING)
        fill(strip);
    else
        check(restarted);
    if (rank == 0) {
        printf("started %" PRIu64 " %" PRIu64 "\n", *step, version);
        if (restarted == SF_OK)
            tell_restart(job);
    }
}

int main(int argc, char **argv)
{
    int granted;
    /* With this, checkpoints become durable while the program computes. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 5)
        die("usage: heat N STEPS EVERY OUTPUT");
    struct strip strip = { .n = strtoull(argv[1], NULL, 10), .steps = strtoull(argv[2], NULL, 10) };
    uint64_t every = strtoull(argv[3], NULL, 10);
    if (strip.n < 80 || strip.n < (size_t)size || strip.steps < 1 || every < 1)
        die("N must be at least 80 and the number of ranks, STEPS and EVERY at least 1");
    strip.first = strip.n * rank / size;
    strip.rows = strip.n * (rank + 1) / size - strip.first;
    size_t bytes = (strip.rows + 2) * strip.n * sizeof(double);

    sf_job *job;
    uint64_t step = 0;
    check(sf_init_comm(MPI_COMM_WORLD, NULL, &job));
    check(sf_alloc_protected(job, "plate", bytes, sizeof(double), (void **)&strip.plate));
    check(sf_alloc_protected(job, "table", TABLE * sizeof(double), sizeof(double), (void **)&strip.table));
    check(sf_protect_typed(job, "step", &step, 1, SF_U64));
    strip.next = malloc(bytes);
    if (!strip.next)
        die("no memory");
    start(job, &strip, &step);

    double began = MPI_Wtime();
    uint64_t first = step;
    while (step < strip.steps) {
        spread(&strip);
        shine(&strip, step);
        step++;
        /* At the steps of the demonstration, and besides when one is due or asked for: steps are
         * short, so that looking now and then is enough. */
        int looks = step % (strip.steps / 200 + 1) == 0;
        uint64_t version = 0;
        if (step % every == 0)
            check(sf_checkpoint(job, SF_NEXT, &version));
        else if (looks)
            check(sf_point(job, &version));
        if (rank == 0 && version > 0)
            printf("checkpoint %" PRIu64 " %" PRIu64 "\n", version, step);
        if (rank == 0 && looks)
            printf("step %" PRIu64 "\n", step);
    }
    save(&strip, argv[4]);
    if (rank == 0)
        printf("finished %" PRIu64 " %.3f\n", step - first, MPI_Wtime() - began);
    check(sf_finalize(job));
    free(strip.next);
    MPI_Finalize();
    return 0;
}
