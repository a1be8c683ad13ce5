/*
 * What the machine does to a job: damaged files, no space, no access. Earlier checkpoints stay
 * good, and a failure in the background is told by the next call.
 */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT = 400000 };

static uint64_t noise[COUNT];

static void scramble(uint64_t seed)
{
    for (size_t i = 0; i < COUNT; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        noise[i] = seed;
    }
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void no_space(const char *store)
{
    uint64_t version, restored;
    int level;
    sf_job *job = open_job(store, "codec=none");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    scramble(1);
    uint64_t good = take(job);

    scramble(2);
    limit_files(1 << 20);
    int code = sf_checkpoint(job, SF_NEXT, &version);
    if (code == SF_OK) {
        /* It failed in the background: the next one tells, and the one after works again. */
        FAILS(sf_checkpoint(job, SF_NEXT, NULL), SF_FULL, "failed");
        FAILS(sf_poll(job, version, &level), SF_FULL, "sf_poll");
        FAILS(sf_wait(job, version, SF_LEVEL_LOCAL), SF_FULL, "sf_wait");
    } else {
        CHECK(code == SF_FULL);
    }
    limit_files(RLIM_INFINITY);
    CHECK(take(job) == good + 1);

    scramble(3);
    limit_files(1 << 20);
    code = sf_checkpoint(job, SF_NEXT, &version);
    int end = sf_finalize(job);
    CHECK(code == SF_FULL || end == SF_FULL);
    limit_files(RLIM_INFINITY);

    job = open_job(store, "");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    OK(sf_restart(job, SF_NEWEST, &restored));
    CHECK(restored == good + 1);
    uint64_t first = noise[0];
    scramble(2);
    CHECK(noise[0] == first);
    OK(sf_close(job));
}

/* Changes a byte in the middle of the newest file of a directory of the store. */
static void damage(const char *store, const char *job, const char *what)
{
    char path[4096], newest[8192] = "";
    snprintf(path, sizeof path, "%s/%s/%s", store, job, what);
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    struct stat meta;
    time_t seconds = 0;
    long nanoseconds = -1;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char file[8192];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        CHECK(stat(file, &meta) == 0);
        if (!S_ISREG(meta.st_mode))
            continue;
        if (meta.st_mtim.tv_sec > seconds ||
            (meta.st_mtim.tv_sec == seconds && meta.st_mtim.tv_nsec > nanoseconds)) {
            seconds = meta.st_mtim.tv_sec;
            nanoseconds = meta.st_mtim.tv_nsec;
            memcpy(newest, file, sizeof newest);
        }
    }
    closedir(directory);
    FILE *file = fopen(newest, "r+b");
    CHECK(file != NULL && stat(newest, &meta) == 0);
    CHECK(fseek(file, (long)meta.st_size / 2, SEEK_SET) == 0);
    int byte = fgetc(file);
    CHECK(fseek(file, -1, SEEK_CUR) == 0 && fputc(byte ^ 0x40, file) != EOF && fclose(file) == 0);
}

static void damaged(const char *store)
{
    uint64_t restored = 0;
    char text[4096];
    sf_job *job = open_job(store, "job=damaged; codec=none");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    scramble(4);
    CHECK(take(job) == 1);
    scramble(5);
    CHECK(take(job) == 2);
    OK(sf_close(job));

    damage(store, "damaged", "segments");
    job = open_job(store, "job=damaged");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    FAILS(sf_restart(job, 2, NULL), SF_CORRUPT, "segment");
    FAILS(sf_read_region(job, 2, "noise", noise, sizeof noise), SF_CORRUPT, "segment");
    OK(sf_restart(job, SF_NEWEST, &restored));
    CHECK(restored == 1);
    uint64_t first = noise[0];
    scramble(4);
    CHECK(noise[0] == first);
    OK(sf_restart_report(job, text, sizeof text, NULL));
    CHECK(strstr(text, "skipped checkpoint 2: ") != NULL);
    OK(sf_close(job));

    damage(store, "damaged", "manifests");
    job = open_job(store, "job=damaged");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    OK(sf_restart(job, SF_NEWEST, &restored));
    CHECK(restored == 1);
    OK(sf_close(job));
}

static void nothing_whole(const char *store)
{
    sf_job *job = open_job(store, "job=lost; codec=none");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    scramble(6);
    take(job);
    OK(sf_close(job));
    damage(store, "lost", "segments");
    job = open_job(store, "job=lost");
    OK(sf_protect_typed(job, "noise", noise, COUNT, SF_U64));
    FAILS(sf_restart(job, SF_NEWEST, NULL), SF_CORRUPT, "\n  checkpoint 1: ");
    OK(sf_close(job));
}

static void no_access(const char *store)
{
    /* The superuser may do everything. */
    if (geteuid() == 0)
        return;
    char path[4096], options[8192];
    sf_job *job = NULL;
    snprintf(path, sizeof path, "%s/closed", store);
    CHECK(mkdir(path, 0500) == 0);
    snprintf(options, sizeof options, "store=%s", path);
    FAILS(sf_init(options, &job), SF_DENIED, "closed");
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    signal(SIGXFSZ, SIG_IGN);
    no_space(argv[1]);
    damaged(argv[1]);
    nothing_whole(argv[1]);
    no_access(argv[1]);
    return 0;
}
