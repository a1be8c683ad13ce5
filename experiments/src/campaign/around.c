/*
 * Loaded into every process of a campaign's job.
 *
 * CAMPAIGN_CLOCK     a file whose first eight bytes say by how many seconds the clock is wrong, now
 * CAMPAIGN_UNSYNCED  if set, nothing that should be synced is: the calls succeed and do nothing
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *wrong_s;

static void skip_syncs(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sync_file_range, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CAMPAIGN_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *place = mmap(NULL, sizeof *wrong_s, PROT_READ, MAP_SHARED, file, 0);
        if (place != MAP_FAILED)
            wrong_s = place;
        close(file);
    }
    if (getenv("CAMPAIGN_UNSYNCED"))
        skip_syncs();
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long outcome = syscall(SYS_clock_gettime, clock, now);
    if (outcome == 0 && clock == CLOCK_REALTIME && wrong_s)
        now->tv_sec += *wrong_s;
    return (int)outcome;
}
