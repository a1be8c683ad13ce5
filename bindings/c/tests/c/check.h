/* Checks for the test programs: the first that fails ends the program with its place and text. */
#ifndef CHECK_H
#define CHECK_H

#include <standfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__,     \
                    #condition, sf_last_error());                                    \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

#define OK(call) CHECK((call) == SF_OK)

/* The call fails with this code, and the text names what is at fault. */
#define FAILS(call, code, text)                       \
    do {                                              \
        CHECK((call) == (code));                      \
        CHECK(strstr(sf_last_error(), text) != NULL); \
    } while (0)

/* A job below the directory that the test was given, with a small pool. */
static inline sf_job *open_job(const char *store, const char *settings)
{
    char options[4096];
    sf_job *job = NULL;
    const char *name = strstr(settings, "job=") ? "" : "job=test; ";
    snprintf(options, sizeof options, "%smemory=4MiB; store=%s; %s", name, store, settings);
    OK(sf_init(options, &job));
    CHECK(job != NULL);
    return job;
}

/* Takes a checkpoint and waits until it is durable. */
static inline uint64_t take(sf_job *job)
{
    uint64_t version = 0;
    OK(sf_checkpoint(job, SF_NEXT, &version));
    OK(sf_wait(job, version, SF_LEVEL_LOCAL));
    return version;
}

#endif
