/*
 * Loaded into every process of a campaign's job.
 *
 * CAMPAIGN_CLOCK     a file whose first eight bytes say by how many seconds the clock is wrong, now
 * CAMPAIGN_UNSYNCED  if set, nothing that should be synced is: the calls succeed and do nothing
 * CAMPAIGN_WATCHED   if set, calls that open, name and remove files wait for a listener, whose number is
 *                    told on standard output; children are watched by it, too
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

#define WATCH(call)                                                                                       \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

static void be_watched(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        WATCH(SYS_openat),
        WATCH(SYS_unlinkat),
        WATCH(SYS_renameat),
        WATCH(SYS_renameat2),
        WATCH(SYS_linkat),
#ifdef SYS_unlink
        WATCH(SYS_unlink),
        WATCH(SYS_rename),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* A child of a process that is watched already is refused. */
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener >= 0)
        dprintf(STDOUT_FILENO, "watch %ld\n", listener);
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
    if (getenv("CAMPAIGN_WATCHED"))
        be_watched();
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long outcome = syscall(SYS_clock_gettime, clock, now);
    if (outcome == 0 && clock == CLOCK_REALTIME && wrong_s)
        now->tv_sec += *wrong_s;
    return (int)outcome;
}
