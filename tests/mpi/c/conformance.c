/*
 * The conformance suite on all ranks, and on communicators that the program has made of some:
 *     conformance THREAD_LEVEL [BYTES]
 * With BYTES, messages of that length instead.
 */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

static int level_of(const char *name)
{
    if (strcmp(name, "single") == 0)
        return MPI_THREAD_SINGLE;
    if (strcmp(name, "funneled") == 0)
        return MPI_THREAD_FUNNELED;
    if (strcmp(name, "serialized") == 0)
        return MPI_THREAD_SERIALIZED;
    return MPI_THREAD_MULTIPLE;
}

/* Every other rank, in reverse: ranks there and here differ. The one left over has none. */
static void conform_in_parts(void)
{
    int rank, size;
    MPI_Comm part;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : rank % 2, -rank, &part);
    if (part == MPI_COMM_NULL)
        return;
    conform(part);
    MPI_Comm_free(&part);
}

int main(int argc, char **argv)
{
    int provided, rank;
    if (argc < 2 || MPI_Init_thread(&argc, &argv, level_of(argv[1]), &provided) != MPI_SUCCESS)
        return 2;
    if (provided < level_of(argv[1]))
        fprintf(stderr, "this MPI has no thread level %s\n", argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2) {
        MPI_Comm world = MPI_COMM_WORLD;
        if (standfast_test_huge(sf_mpi_table(), &world, strtoull(argv[2], NULL, 10)) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    } else {
        conform(MPI_COMM_WORLD);
        conform_in_parts();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts(provided == MPI_THREAD_MULTIPLE ? "conforms in all threads" : "conforms");
    MPI_Finalize();
    return 0;
}
