/*
 * A square plate, hot at its upper edge and cold at the others. In every step each inner point
 * takes the mean of its four neighbours, and so the heat spreads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <standfast.h>

static void die(const char *why)
{
    fprintf(stderr, "heat: %s\n", why);
    exit(1);
}

static void check(int code)
{
    if (code != SF_OK)
        die(sf_last_error());
}

static void spread(double *plate, size_t n)
{
    for (size_t row = 1; row < n - 1; row++) {
        for (size_t column = 1; column < n - 1; column++) {
            double *here = plate + row * n + column;
            *here = 0.25 * (*(here - n) + *(here + n) + *(here - 1) + *(here + 1));
        }
    }
}

static void save(const double *plate, size_t count, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(plate, sizeof *plate, count, file) != count || fclose(file) != 0)
        die("cannot write the output");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: heat N STEPS EVERY OUTPUT");
    size_t n = strtoull(argv[1], NULL, 10);
    uint64_t steps = strtoull(argv[2], NULL, 10);
    uint64_t every = strtoull(argv[3], NULL, 10);
    if (n < 3 || every < 1)
        die("N must be at least 3 and EVERY at least 1");

    double *plate = calloc(n * n, sizeof *plate);
    uint64_t step = 0;
    if (!plate)
        die("no memory");
    for (size_t column = 0; column < n; column++)
        plate[column] = 100.0;

    sf_job *job;
    check(sf_init(NULL, &job));
    check(sf_protect_typed(job, "plate", plate, n * n, SF_F64));
    check(sf_protect_typed(job, "step", &step, 1, SF_U64));
    int restarted = sf_restart(job, SF_NEWEST, NULL);
    if (restarted != SF_MISSING) {
        check(restarted);
        printf("goes on from step %" PRIu64 "\n", step);
    }

    while (step < steps) {
        spread(plate, n);
        step++;
        check(sf_point(job, NULL));
        if (step % every == 0) {
            printf("step %" PRIu64 ": %.9f degrees inside\n", step, plate[n / 16 * n + n / 2]);
        }
    }
    save(plate, n * n, argv[4]);
    check(sf_finalize(job));
    free(plate);
    return 0;
}
