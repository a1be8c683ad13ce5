! A square plate, hot at its upper edge and cold at the others. In every step each inner point takes
! the mean of its four neighbours, and so the heat spreads.
!
! Every rank has a strip of rows, between a row of its neighbour above and one of that below.
program heat
    use mpi
    use standfast
    use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
    implicit none

    integer :: rank, size, failed
    integer :: n, rows
    integer(int64), target :: step
    integer(int64) :: steps, every
    real(real64), allocatable, target :: plate(:, :)
    real(real64), allocatable :: next(:, :)
    character(1000) :: output
    type(sf_job) :: job
    integer :: restarted

    call MPI_Init(failed)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, failed)
    call MPI_Comm_size(MPI_COMM_WORLD, size, failed)
    if (command_argument_count() /= 4) call die("usage: heat N STEPS EVERY OUTPUT")
    n = int(number(1))
    steps = number(2)
    every = number(3)
    call get_command_argument(4, output)
    if (n < size + 2 .or. every < 1) then
        call die("N must be at least the number of ranks + 2, and EVERY at least 1")
    end if

    rows = (n - 2) * (rank + 1) / size - (n - 2) * rank / size
    allocate(plate(n, 0:rows + 1), next(n, 0:rows + 1), source=0.0_real64)
    step = 0
    if (rank == 0) plate(:, 0) = 100

    call check(sf_init_comm(MPI_COMM_WORLD, "", job))
    call check(sf_protect(job, "plate", plate))
    call check(sf_protect(job, "step", step))
    restarted = sf_restart(job, SF_NEWEST)
    if (restarted /= SF_MISSING) then
        call check(restarted)
        if (rank == 0) print "('goes on from step ', i0)", step
    end if

    do while (step < steps)
        call spread()
        step = step + 1
        call check(sf_point(job))
        if (mod(step, every) == 0) then
            if (rank == 0) print "('step ', i0, ': ', f0.9, ' degrees inside')", step, plate(n / 2 + 1, 1)
        end if
    end do
    call save_plate()
    call check(sf_finalize(job))
    call MPI_Finalize(failed)

contains

    subroutine die(why)
        character(*), intent(in) :: why

        write (error_unit, "('heat: rank ', i0, ': ', a)") rank, why
        call MPI_Abort(MPI_COMM_WORLD, 1, failed)
    end subroutine

    subroutine check(code)
        integer, intent(in) :: code

        if (code /= SF_OK) call die(sf_last_error())
    end subroutine

    integer(int64) function number(at)
        integer, intent(in) :: at
        character(32) :: text
        integer :: wrong

        call get_command_argument(at, text)
        read (text, *, iostat=wrong) number
        if (wrong /= 0) call die("not a number: " // text)
    end function

    ! Brings the rows of the neighbours up to date.
    subroutine exchange()
        integer :: above, below

        above = merge(rank - 1, MPI_PROC_NULL, rank > 0)
        below = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)
        call MPI_Sendrecv(plate(:, 1), n, MPI_DOUBLE_PRECISION, above, 0, &
            plate(:, rows + 1), n, MPI_DOUBLE_PRECISION, below, 0, &
            MPI_COMM_WORLD, MPI_STATUS_IGNORE, failed)
        call MPI_Sendrecv(plate(:, rows), n, MPI_DOUBLE_PRECISION, below, 0, &
            plate(:, 0), n, MPI_DOUBLE_PRECISION, above, 0, &
            MPI_COMM_WORLD, MPI_STATUS_IGNORE, failed)
    end subroutine

    subroutine spread()
        integer :: row, column

        call exchange()
        do row = 1, rows
            do column = 2, n - 1
                next(column, row) = 0.25_real64 * (plate(column, row - 1) + plate(column, row + 1) &
                    + plate(column - 1, row) + plate(column + 1, row))
            end do
        end do
        plate(:, 1:rows) = next(:, 1:rows)
    end subroutine

    ! The strips behind each other, in one file.
    subroutine save_plate()
        integer :: turn, unit, first, last

        ! The first rank also has the upper edge, the last one the lower.
        first = merge(0, 1, rank == 0)
        last = merge(rows + 1, rows, rank == size - 1)
        do turn = 0, size - 1
            call MPI_Barrier(MPI_COMM_WORLD, failed)
            if (turn /= rank) cycle
            open (newunit=unit, file=output, access="stream", form="unformatted", &
                status=merge("replace", "old    ", rank == 0), position="append")
            write (unit) plate(:, first:last)
            close (unit)
        end do
    end subroutine
end program
