! sf_init_comm of module standfast, for programs that link standfast_mpi.c. It is a part of its own
! so that programs without MPI need none of it.
submodule (standfast) standfast_mpi
    implicit none

    interface
        integer(c_int) function c_init_comm(comm, options, job) bind(C, name="sf_init_comm_f")
            import :: c_char, c_int, sf_job
            integer(c_int), value :: comm
            character(kind=c_char), intent(in) :: options(*)
            type(sf_job), intent(out) :: job
        end function
    end interface

contains

    module function sf_init_comm(comm, options, job) result(code)
        integer, intent(in) :: comm
        character(*), intent(in) :: options
        type(sf_job), intent(out) :: job
        integer(c_int) :: code

        code = c_init_comm(int(comm, c_int), options // c_null_char, job)
    end function
end submodule
