/* A signal asks for a checkpoint, which is taken at the next point and nowhere else. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

static double field[5000];
static volatile sig_atomic_t own;

static void count(int signal)
{
    (void)signal;
    own++;
}

static int is_needed(sf_job *job)
{
    int due = -1;
    OK(sf_need_checkpoint(job, &due));
    return due;
}

static uint64_t point(sf_job *job)
{
    uint64_t version = 99;
    OK(sf_point(job, &version));
    return version;
}

int main(int argc, char **argv)
{
    struct sigaction action;
    sf_job *job, *none;
    size_t count_all = 9;
    CHECK(argc == 2);
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    sigaction(SIGUSR1, &action, NULL);

    FAILS(sf_init("store=memory:; signal=KILL", &none), SF_INVALID, "signal");
    job = open_job(argv[1], "signal=USR1");
    OK(sf_protect_typed(job, "field", field, 5000, SF_F64));
    CHECK(!is_needed(job) && point(job) == 0);

    field[7] = 7;
    kill(getpid(), SIGUSR1);
    CHECK(own == 1);
    OK(sf_list(job, NULL, 0, &count_all));
    CHECK(count_all == 0 && is_needed(job));
    CHECK(point(job) == 1 && !is_needed(job) && point(job) == 0);
    OK(sf_wait(job, 1, SF_LEVEL_LOCAL));

    field[7] = 8;
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    CHECK(own == 3 && point(job) == 2 && point(job) == 0);
    OK(sf_restart(job, 1, NULL));
    CHECK(field[7] == 7);
    OK(sf_finalize(job));
    /* One that comes late ends nothing. */
    kill(getpid(), SIGUSR1);
    CHECK(own == 4);
    return 0;
}
