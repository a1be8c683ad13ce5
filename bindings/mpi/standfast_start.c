/*
 * Starts MPI for a program that is not linked with it, such as one in Rust: compiled together with
 * standfast_mpi.c into a library that the program opens (standfast_mpi::Library).
 */
#include <mpi.h>
#include <stddef.h>

static MPI_Comm world;

/* All ranks, as a pointer to their communicator; NULL if MPI does not start. */
void *sf_mpi_start(void)
{
    int provided;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return NULL;
    world = MPI_COMM_WORLD;
    return &world;
}

void sf_mpi_end(void)
{
    MPI_Finalize();
}
