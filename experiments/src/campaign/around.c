/* A clock that is wrong by CLOCK_WRONG_S seconds, for programs that load this library first. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static long wrong;
    static int known;
    long outcome = syscall(SYS_clock_gettime, clock, now);
    if (!known) {
        const char *text = getenv("CLOCK_WRONG_S");
        wrong = text ? atol(text) : 0;
        known = 1;
    }
    if (outcome == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += wrong;
    return (int)outcome;
}
