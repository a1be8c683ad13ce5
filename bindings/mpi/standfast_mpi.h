/*
 * Standfast for MPI programs.
 *
 *     sf_job *job;
 *     MPI_Init(&argc, &argv);
 *     if (sf_init_comm(MPI_COMM_WORLD, "job=heat", &job) != SF_OK)
 *         die(sf_last_error());
 *     ...                                     as in standfast.h, on every rank
 *     sf_finalize(job);
 *     MPI_Finalize();
 *
 * The functions are in standfast_mpi.c, which is compiled with the program's own mpicc: the library
 * itself belongs to no MPI.
 */
#ifndef STANDFAST_MPI_H
#define STANDFAST_MPI_H

#include <mpi.h>
#include <standfast.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens a job whose ranks are those of a communicator. All of them call it; those without a part in
 * the job do not. `sf_finalize` comes before `MPI_Finalize`.
 *
 * The communicator is duplicated: messages of the job never meet those of the program, and the
 * program may free its own. With `MPI_THREAD_MULTIPLE` the ranks also talk to each other in the
 * background; otherwise only inside calls of this library, which are then to be made by a thread
 * that may call MPI.
 *
 * @param comm    Any communicator within a group, such as `MPI_COMM_WORLD`.
 * @param options Settings as for `sf_init`, or NULL for none.
 * @param job     Where the handle goes; NULL goes there on failure.
 * @return As `sf_init`; `SF_INVALID` also if MPI is not running or the communicator cannot be used.
 *         If one rank fails, all do.
 */
SF_API SF_CHECKED int sf_init_comm(MPI_Comm comm, const char *options, sf_job **job);

/**
 * `sf_init_comm` with a communicator as Fortran knows it.
 */
SF_API SF_CHECKED int sf_init_comm_f(MPI_Fint comm, const char *options, sf_job **job);

/**
 * The functions by which ranks talk over MPI. Their communicators are pointers to `MPI_Comm`.
 *
 * For programs in other languages that open jobs without `sf_init_comm`.
 *
 * @return A constant table, never NULL.
 */
SF_API const sf_comm_table *sf_mpi_table(void);

#ifdef __cplusplus
}
#endif

#endif
