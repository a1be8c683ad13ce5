/* Wrong arguments, wrong settings, wrong handles: each gets its code and a text that names it. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static double field[1000];

static void settings(const char *store)
{
    sf_job *job = (sf_job *)field;
    FAILS(sf_init(NULL, NULL), SF_INVALID, "sf_init: job is NULL");
    FAILS(sf_init("codek=lz4", &job), SF_INVALID, "codek");
    CHECK(job == NULL);
    FAILS(sf_init("job", &job), SF_INVALID, "name=value");
    FAILS(sf_init("job=../x", &job), SF_INVALID, "job");
    FAILS(sf_init("lab.page=5KiB", &job), SF_INVALID, "page");
    FAILS(sf_init("memory=1KiB", &job), SF_INVALID, "memory");
    FAILS(sf_init("job=\xff", &job), SF_INVALID, "options");
    FAILS(sf_init("store=gopher://x", &job), SF_INVALID, "gopher");
    char below_a_file[4096];
    snprintf(below_a_file, sizeof below_a_file, "store=%s/test/store", store);
    sf_job *first = open_job(store, "");
    FAILS(sf_init(below_a_file, &job), SF_INVALID, "store");
    OK(sf_finalize(first));
}

static void two_openers(const char *store)
{
    char options[4096];
    sf_job *first = open_job(store, ""), *second = NULL;
    snprintf(options, sizeof options, "job=test; store=%s", store);
    FAILS(sf_init(options, &second), SF_BUSY, "pid");
    CHECK(second == NULL);
    snprintf(options, sizeof options, "job=other; store=%s", store);
    OK(sf_init(options, &second));
    CHECK(second != first);
    OK(sf_finalize(second));
    OK(sf_finalize(first));
}

static void handles(const char *store)
{
    uint64_t version, bytes;
    size_t count;
    sf_job *job = open_job(store, "");
    OK(sf_finalize(job));
    sf_job *wrong[3] = {NULL, job, (sf_job *)field};
    for (int i = 0; i < 3; i++) {
        sf_job *bad = wrong[i];
        FAILS(sf_finalize(bad), SF_INVALID, "sf_finalize: job is");
        FAILS(sf_protect(bad, "a", field, 8), SF_INVALID, "sf_protect: job is");
        FAILS(sf_protect_typed(bad, "a", field, 1, SF_F64), SF_INVALID, "job is");
        FAILS(sf_unprotect(bad, "a"), SF_INVALID, "sf_unprotect: job is");
        FAILS(sf_checkpoint(bad, SF_NEXT, &version), SF_INVALID, "sf_checkpoint: job is");
        FAILS(sf_poll(bad, 1, NULL), SF_INVALID, "sf_poll: job is");
        FAILS(sf_wait(bad, 1, SF_LEVEL_LOCAL), SF_INVALID, "sf_wait: job is");
        FAILS(sf_list(bad, NULL, 0, &count), SF_INVALID, "sf_list: job is");
        FAILS(sf_report(bad, 1, NULL, 0, NULL), SF_INVALID, "sf_report: job is");
        FAILS(sf_restart(bad, SF_NEWEST, NULL), SF_INVALID, "sf_restart: job is");
        FAILS(sf_restart_report(bad, NULL, 0, NULL), SF_INVALID, "sf_restart_report: job is");
        FAILS(sf_regions(bad, 1, NULL, 0, &count), SF_INVALID, "sf_regions: job is");
        FAILS(sf_region_bytes(bad, 1, "a", &bytes), SF_INVALID, "job is");
        FAILS(sf_read_region(bad, 1, "a", field, 8), SF_INVALID, "sf_read_region: job is");
    }
}

static void regions(const char *store)
{
    sf_job *job = open_job(store, "");
    char long_name[257];
    memset(long_name, 'x', 256);
    long_name[256] = 0;
    FAILS(sf_protect(job, NULL, field, 8), SF_INVALID, "name is NULL");
    FAILS(sf_protect(job, "", field, 8), SF_INVALID, "empty");
    FAILS(sf_protect(job, "a\nb", field, 8), SF_INVALID, "control");
    FAILS(sf_protect(job, "\xc3(", field, 8), SF_INVALID, "not UTF-8");
    FAILS(sf_protect(job, long_name, field, 8), SF_INVALID, "255");
    FAILS(sf_protect(job, "a", NULL, 8), SF_INVALID, "\"a\"");
    FAILS(sf_protect(job, "a", field, (size_t)-1), SF_INVALID, "memory");
    FAILS(sf_protect_typed(job, "a", field, 1, 99), SF_INVALID, "type 99");
    FAILS(sf_protect_typed(job, "a", field, (size_t)-1, SF_F64), SF_INVALID, "elements");
    OK(sf_protect_typed(job, "a", field, 500, SF_F64));
    FAILS(sf_protect(job, "a", field + 500, 8), SF_INVALID, "already");
    FAILS(sf_protect(job, "b", field + 499, 16), SF_INVALID, "overlaps");
    FAILS(sf_unprotect(job, "b"), SF_MISSING, "\"b\"");
    FAILS(sf_unprotect(job, NULL), SF_INVALID, "name is NULL");
    OK(sf_unprotect(job, "a"));
    OK(sf_protect(job, "b", field + 499, 16));
    OK(sf_finalize(job));
}

static void checkpoints(const char *store)
{
    uint64_t bytes;
    size_t count;
    int level;
    sf_job *job = open_job(store, "job=lookup");
    OK(sf_protect(job, "a", field, sizeof field));
    uint64_t odd[2];
    FAILS(sf_checkpoint(job, SF_NEXT, (uint64_t *)((char *)odd + 1)), SF_INVALID, "aligned");
    uint64_t version = take(job);
    FAILS(sf_poll(job, 77, &level), SF_MISSING, "77");
    FAILS(sf_poll(job, 0, &level), SF_INVALID, "version 0");
    FAILS(sf_wait(job, 77, SF_LEVEL_LOCAL), SF_MISSING, "77");
    FAILS(sf_wait(job, version, 0), SF_INVALID, "level 0");
    FAILS(sf_wait(job, version, SF_LEVEL_RING), SF_UNSUPPORTED, "ring");
    FAILS(sf_list(job, NULL, 1, &count), SF_INVALID, "buf is NULL");
    FAILS(sf_list(job, NULL, 0, NULL), SF_INVALID, "count is NULL");
    FAILS(sf_regions(job, version, NULL, 1, &count), SF_INVALID, "buf is NULL");
    FAILS(sf_regions(job, 77, NULL, 0, &count), SF_MISSING, "77");
    FAILS(sf_report(job, version, NULL, 1, NULL), SF_INVALID, "buf is NULL");
    FAILS(sf_report(job, 77, NULL, 0, NULL), SF_MISSING, "77");
    FAILS(sf_restart_report(job, NULL, 0, NULL), SF_MISSING, "sf_restart");
    FAILS(sf_region_bytes(job, version, "b", &bytes), SF_MISSING, "\"b\"");
    FAILS(sf_region_bytes(job, version, "a", NULL), SF_INVALID, "bytes is NULL");
    FAILS(sf_region_bytes(job, 77, "a", &bytes), SF_MISSING, "77");
    FAILS(sf_read_region(job, version, "a", NULL, 8), SF_INVALID, "buf is NULL");
    FAILS(sf_read_region(job, version, "a", field, 8), SF_INVALID, "8000 bytes");
    FAILS(sf_read_region(job, version, "b", field, 8), SF_MISSING, "\"b\"");
    FAILS(sf_restart(job, 77, NULL), SF_MISSING, "77");
    static char other[8];
    OK(sf_protect(job, "new", other, sizeof other));
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_INVALID, "no region \"new\"");
    OK(sf_unprotect(job, "new"));
    OK(sf_unprotect(job, "a"));
    OK(sf_protect(job, "a", field, 4000));
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_INVALID, "8000 bytes there and 4000 here");
    OK(sf_finalize(job));
}

static void forked_child(const char *store)
{
    sf_job *job = open_job(store, "");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        FAILS(sf_checkpoint(job, SF_NEXT, NULL), SF_INVALID, "forked child");
        FAILS(sf_finalize(job), SF_INVALID, "forked child");
        sf_job *own = open_job(store, "job=child");
        OK(sf_finalize(own));
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    take(job);
    OK(sf_finalize(job));
}

static void names(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", SF_VERSION_MAJOR, SF_VERSION_MINOR,
             SF_VERSION_PATCH);
    CHECK(strcmp(sf_version_string(), version) == 0);
    CHECK(strcmp(sf_error_name(SF_OK), "ok") == 0);
    CHECK(strcmp(sf_error_name(SF_MISSING), "missing") == 0);
    CHECK(strcmp(sf_error_name(12345), "unknown") == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(strcmp(sf_last_error(), "") == 0);
    names();
    settings(argv[1]);
    two_openers(argv[1]);
    handles(argv[1]);
    regions(argv[1]);
    checkpoints(argv[1]);
    forked_child(argv[1]);
    return 0;
}
