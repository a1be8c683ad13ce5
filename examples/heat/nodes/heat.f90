! The solver of `standfast demo --language fortran`: a plate at room temperature, and a laser that
! goes round on it. The warmer the metal, the better it conducts: every rank has the same table of
! that.
!
! Every rank has a strip of rows, between a row of its neighbour above and one of that below.
! Name, stores, ring, agents and global storage are settings: nothing here knows of them.
!
! Rank 0 tells on its output what happens, in the lines that heat.c describes.
program heat
    use mpi
    use standfast
    use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit, real64
    implicit none

    integer, parameter :: entries = 2**18
    real(real64), parameter :: hot = 1000, cool = 20, turn_round = 6.283185307179586_real64
    integer :: rank, size, granted, failed
    integer :: n, first, rows
    integer(int64), target :: step
    integer(int64) :: steps, every, version, from
    real(real64), allocatable, target :: plate(:, :), table(:)
    real(real64), allocatable :: next(:, :)
    real(real64) :: began
    logical :: looks
    character(1000) :: output
    type(sf_job) :: job

    ! With this, checkpoints become durable while the program computes.
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, granted, failed)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, failed)
    call MPI_Comm_size(MPI_COMM_WORLD, size, failed)
    if (command_argument_count() /= 4) call die("usage: heat N STEPS EVERY OUTPUT")
    n = int(number(1))
    steps = number(2)
    every = number(3)
    call get_command_argument(4, output)
    if (n < 80 .or. n < size .or. steps < 1 .or. every < 1) then
        call die("N must be at least 80 and the number of ranks, STEPS and EVERY at least 1")
    end if

    first = n * rank / size
    rows = n * (rank + 1) / size - first
    allocate(plate(n, 0:rows + 1), next(n, 0:rows + 1), table(0:entries - 1), source=0.0_real64)
    step = 0
    call check(sf_init_comm(MPI_COMM_WORLD, "", job))
    call check(sf_protect(job, "plate", plate))
    call check(sf_protect(job, "table", table))
    call check(sf_protect(job, "step", step))
    call start()

    began = MPI_Wtime()
    from = step
    do while (step < steps)
        call spread()
        call shine()
        step = step + 1
        ! At the steps of the demonstration, and besides when one is due or asked for: steps are
        ! short, so that looking now and then is enough.
        looks = mod(step, steps / 200 + 1) == 0
        version = 0
        if (mod(step, every) == 0) then
            call check(sf_checkpoint(job, SF_NEXT, version))
        else if (looks) then
            call check(sf_point(job, version))
        end if
        if (rank == 0 .and. version > 0) call tell("checkpoint", version, step)
        if (rank == 0 .and. looks) then
            print "('step ', i0)", step
            flush (output_unit)
        end if
    end do
    call save_plate()
    if (rank == 0) then
        print "('finished ', i0, ' ', f0.3)", step - from, MPI_Wtime() - began
        flush (output_unit)
    end if
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

    subroutine tell(what, one, other)
        character(*), intent(in) :: what
        integer(int64), intent(in) :: one, other

        print "(a, ' ', i0, ' ', i0)", what, one, other
        flush (output_unit)
    end subroutine

    integer(int64) function number(at)
        integer, intent(in) :: at
        character(32) :: text
        integer :: wrong

        call get_command_argument(at, text)
        read (text, *, iostat=wrong) number
        if (wrong /= 0) call die("not a number: " // text)
    end function

    ! Goes on from the newest checkpoint of any level, or begins.
    subroutine start()
        integer :: restarted

        version = 0
        restarted = sf_restart(job, SF_NEWEST, version)
        if (restarted == SF_MISSING) then
            call fill()
        else
            call check(restarted)
        end if
        if (rank == 0) call tell("started", step, version)
        if (rank == 0 .and. restarted == SF_OK) call tell_restart()
    end subroutine

    ! What the restart says of itself.
    subroutine tell_restart()
        character(:), allocatable :: text
        integer :: line_end

        call check(sf_restart_report(job, text))
        do while (len_trim(text) > 0)
            line_end = index(text // new_line(text), new_line(text))
            print "('note ', a)", text(:line_end - 1)
            text = text(min(line_end + 1, len(text) + 1):)
        end do
        flush (output_unit)
    end subroutine

    subroutine fill()
        integer :: at

        plate = cool
        do at = 0, entries - 1
            table(at) = 0.12_real64 + 0.1_real64 * sin(at * (1.5_real64 / entries)) * cos(at * 1e-3_real64)**2
        end do
    end subroutine

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

    ! One step in time; the rim of the plate stays cool.
    subroutine spread()
        integer :: row, column
        real(real64) :: here, around, conducts

        call exchange()
        do row = 1, rows
            do column = 2, n - 1
                here = plate(column, row)
                around = plate(column, row - 1) + plate(column, row + 1) &
                    + plate(column - 1, row) + plate(column + 1, row)
                conducts = table(int(here * ((entries - 1) / hot)))
                next(column, row) = here + conducts * (around - 4 * here)
            end do
            next(1, row) = cool
            next(n, row) = cool
        end do
        plate(:, 1:rows) = next(:, 1:rows)
    end subroutine

    ! The laser heats what of its spot lies in this strip.
    subroutine shine()
        integer :: row, column
        real(real64) :: angle, x, y, dx, dy, radius

        angle = turn_round * step / steps
        x = n * (0.5_real64 + 0.3_real64 * cos(angle))
        y = n * (0.5_real64 + 0.3_real64 * sin(angle))
        radius = n / 40
        do row = 1, rows
            dy = first + row - y
            if (dy * dy > radius * radius) cycle
            do column = int(x - radius), int(x + radius)
                dx = column - x
                if (dx * dx + dy * dy <= radius * radius) plate(column, row) = hot
            end do
        end do
    end subroutine

    ! The strips behind each other, in one file.
    subroutine save_plate()
        integer :: turn, unit

        do turn = 0, size - 1
            call MPI_Barrier(MPI_COMM_WORLD, failed)
            if (turn /= rank) cycle
            open (newunit=unit, file=output, access="stream", form="unformatted", &
                status=merge("replace", "old    ", rank == 0), position="append")
            write (unit) plate(:, 1:rows)
            close (unit)
        end do
    end subroutine
end program
