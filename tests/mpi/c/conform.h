/* Runs the suite of this package's library on communicators; a broken promise ends all ranks. */
#ifndef CONFORM_H
#define CONFORM_H

#include <standfast_mpi.h>
#include <stdio.h>

int standfast_test_conformance(const sf_comm_table *table, void *comm, int any_thread);
int standfast_test_huge(const sf_comm_table *table, void *comm, uint64_t bytes);
/* Keeps a duplicate beyond the end of MPI; the second call checks that it fails and lets it go. */
int standfast_test_keep(const sf_comm_table *table, void *comm);
int standfast_test_drop(void);

static inline void conform(MPI_Comm comm)
{
    int level;
    MPI_Query_thread(&level);
    if (standfast_test_conformance(sf_mpi_table(), &comm, level == MPI_THREAD_MULTIPLE) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

#endif
