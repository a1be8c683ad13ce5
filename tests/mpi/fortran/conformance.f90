! The conformance suite on a communicator that Fortran has made.
program conformance
    use mpi
    implicit none

    integer :: rank, provided, failed, part

    interface
        subroutine conform_f(comm) bind(C)
            use, intrinsic :: iso_c_binding, only: c_int
            integer(c_int), value :: comm
        end subroutine
    end interface

    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, failed)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, failed)
    call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), -rank, part, failed)
    call conform_f(part)
    call MPI_Comm_free(part, failed)
    call MPI_Barrier(MPI_COMM_WORLD, failed)
    if (rank == 0) print "(a)", "conforms"
    call MPI_Finalize(failed)
end program
