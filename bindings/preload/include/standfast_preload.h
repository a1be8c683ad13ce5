/*
 * Checkpoints at a place of the program's choice, under `standfast run --preload`.
 *
 *     if (sf_checkpoint)
 *         sf_checkpoint(NULL, 0, NULL);
 *
 * Nothing has to be linked. The functions are there when the preload library is, and NULL
 * otherwise. A program that links libstandfast has them from there, with the same meaning: a job,
 * or NULL for the whole program, which needs the preload library.
 */
#ifndef STANDFAST_PRELOAD_H
#define STANDFAST_PRELOAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sf_job;

/*
 * With NULL for all three: takes a checkpoint of the whole program, after the previous one has been
 * written. Returns 0 when it is captured; writing goes on in the background. Returns 1 when the
 * program goes on from this very checkpoint after a restart, as setjmp does. Returns a negative code
 * of sf_error if none was taken: SF_UNSUPPORTED (-17) if the program was not started by `standfast
 * run --preload`, SF_TRANSIENT (-13) if it may work the next time; stderr says why.
 */
extern int sf_checkpoint(struct sf_job *job, uint64_t version, uint64_t *out_version)
    __attribute__((weak));

/*
 * With NULL and zeros: waits until the last checkpoint of the whole program is durable. Returns 0 if
 * it is, or if there is none; a negative code of sf_error if it could not be written.
 */
extern int sf_wait(struct sf_job *job, uint64_t version, int level) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
