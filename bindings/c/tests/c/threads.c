/* Many threads use one job at once; the job ends while some of them still call. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 6, ROUNDS = 12, COUNT = 20000 };

static sf_job *job;
static double fields[THREADS][COUNT];
static uint64_t largest;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void *use(void *argument)
{
    size_t me = (size_t)argument;
    char name[32], wrong[32];
    snprintf(name, sizeof name, "field %u", (unsigned)me);
    snprintf(wrong, sizeof wrong, "nothing %u", (unsigned)me);
    for (int round = 0; round < ROUNDS; round++) {
        sf_checkpoint_info list[4];
        size_t count = 0;
        uint64_t version = 0;
        list[0].struct_bytes = sizeof list[0];
        for (size_t i = 0; i < COUNT; i++)
            fields[me][i] = (double)(i * me) + round;
        OK(sf_protect_typed(job, name, fields[me], COUNT, SF_F64));
        OK(sf_checkpoint(job, SF_NEXT, &version));
        FAILS(sf_unprotect(job, wrong), SF_MISSING, wrong);
        OK(sf_wait(job, version, SF_LEVEL_LOCAL));
        OK(sf_poll(job, version, NULL));
        OK(sf_list(job, list, 4, &count));
        OK(sf_unprotect(job, name));
        CHECK(strstr(sf_last_error(), wrong) != NULL);
        pthread_mutex_lock(&guard);
        largest = version > largest ? version : largest;
        pthread_mutex_unlock(&guard);
    }
    return NULL;
}

/* Until the job has ended, calls work; afterwards they are refused. */
static void *poll_to_the_end(void *unused)
{
    (void)unused;
    for (;;) {
        int code = sf_poll(job, largest, NULL);
        if (code == SF_INVALID)
            return NULL;
        OK(code);
    }
}

static void run(void *(*body)(void *), void (*meanwhile)(void))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    if (meanwhile)
        meanwhile();
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void finalize(void)
{
    OK(sf_finalize(job));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    job = open_job(argv[1], "keep=all; codec=none");
    run(use, NULL);
    CHECK(largest == THREADS * ROUNDS);
    run(poll_to_the_end, finalize);
    return 0;
}
