/* A finished job begins anew, one that was closed goes on, another input is refused, and memory that
   went away is told by its region's name. */
#include "check.h"

#include <sys/mman.h>

enum { BYTES = 1 << 20 };

static uint64_t step;

static sf_job *start(const char *store, const char *settings, const char *nx)
{
    sf_job *job = open_job(store, settings);
    OK(sf_declare(job, "nx", nx));
    OK(sf_protect(job, "step", &step, sizeof step));
    step = 0;
    return job;
}

static void lives(const char *store)
{
    uint64_t version = 0;
    sf_job *job = start(store, "", "1024");
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_MISSING, "no checkpoint yet");
    FAILS(sf_declare(job, "ny", "8"), SF_INVALID, "sf_declare: cannot declare \"ny\"");
    step = 7;
    take(job);
    OK(sf_close(job));

    job = start(store, "", "2048");
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_INVALID, "nx: 1024 then, 2048 now");
    OK(sf_finalize(job));

    job = start(store, "", "1024");
    OK(sf_restart(job, SF_NEWEST, &version));
    CHECK(version == 1 && step == 7);
    OK(sf_finalize(job));

    job = start(store, "", "1024");
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_MISSING, "it has finished");
    CHECK(step == 0);
    FAILS(sf_checkpoint(job, 1, NULL), SF_INVALID, "has finished");
    CHECK(take(job) == 2);
    OK(sf_close(job));

    job = start(store, "restart=1", "1024");
    OK(sf_restart(job, SF_NEWEST, &version));
    CHECK(version == 1 && step == 7);
    OK(sf_close(job));
    job = start(store, "restart=never", "1024");
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_MISSING, "restart = never");
    OK(sf_close(job));
}

static void gone(const char *store, const char *settings)
{
    sf_job *job = open_job(store, settings);
    int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | 0x20;
    char *field = (char *)mmap(NULL, BYTES, access, flags, -1, 0);
    CHECK(field != MAP_FAILED);
    OK(sf_protect(job, "field", field, BYTES));
    CHECK(take(job) == 1);
    CHECK(munmap(field, BYTES) == 0);
    FAILS(sf_checkpoint(job, SF_NEXT, NULL), SF_INVALID, "region \"field\" has no memory");
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_INVALID, "region \"field\" has no memory");
    OK(sf_unprotect(job, "field"));
    OK(sf_protect(job, "field", &step, sizeof step));
    CHECK(take(job) == 2);
    OK(sf_finalize(job));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    lives(argv[1]);
    gone(argv[1], "job=stop; capture=stop");
    gone(argv[1], "job=cow; capture=cow");
    return 0;
}
