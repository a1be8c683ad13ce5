! Everything of module standfast, in a program without MPI:  module write|read STORE
! "write" ends after two checkpoints; "read" starts anew and gets everything back.
program module_test
    use standfast
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    implicit none

    integer(int8), target :: bytes(0:9)
    integer(int16), target :: shorts(3, 3)
    integer, target :: step
    integer(int64), allocatable, target :: ids(:)
    real(real32), pointer :: weights(:, :, :)
    real(real64), target :: field(30, 20), gaps(4, 4)
    complex(real32), target :: spectrum(5)
    complex(real64), target :: phase
    logical, target :: flags(6)
    type point
        real(real64) :: x, y
        integer :: id
    end type
    type(point), target :: points(7)
    type(sf_job) :: job, none
    character(1000) :: mode, store

    call get_command_argument(1, mode)
    call get_command_argument(2, store)
    call expect(sf_init("job=fortran; lab.pool=4MiB; store=" // trim(store), job), SF_OK)
    allocate(ids(100), weights(2, 3, 4))
    call protect_all()
    if (mode == "write") then
        call write_checkpoints()
    else
        call read_checkpoints()
    end if
    call wrong_calls()
    if (mode == "write") then
        call expect(sf_close(job), SF_OK)
    else
        call expect(sf_finalize(job), SF_OK)
    end if
    call fails(sf_checkpoint(job, SF_NEXT), SF_INVALID, "job is not open")
    print "(a)", "done"

contains

    subroutine expect(code, expected)
        integer(c_int), intent(in) :: code, expected

        if (code == expected) return
        write (error_unit, *) "code ", code, " instead of ", expected, ": ", sf_last_error()
        error stop
    end subroutine

    subroutine fails(code, expected, text)
        integer(c_int), intent(in) :: code, expected
        character(*), intent(in) :: text

        call expect(code, expected)
        call check(index(sf_last_error(), text) > 0, sf_last_error())
    end subroutine

    subroutine check(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what

        if (condition) return
        write (error_unit, *) what
        error stop
    end subroutine

    subroutine protect_all()
        integer(c_size_t) :: length

        call expect(sf_protect(job, "bytes", bytes), SF_OK)
        call expect(sf_protect(job, "shorts", shorts), SF_OK)
        call expect(sf_protect(job, "step", step), SF_OK)
        call expect(sf_protect(job, "ids", ids), SF_OK)
        call expect(sf_protect(job, "weights", weights), SF_OK)
        call expect(sf_protect(job, "field", field), SF_OK)
        call expect(sf_protect(job, "spectrum", spectrum), SF_OK)
        call expect(sf_protect(job, "phase", phase), SF_OK)
        call expect(sf_protect(job, "flags", flags), SF_OK)
        length = size(points) * storage_size(points) / 8
        call expect(sf_protect(job, "points", c_loc(points), length, SF_BYTE), SF_OK)
        ! Columns of an array lie in one piece.
        call expect(sf_protect(job, "columns", gaps(:, 2:3)), SF_OK)
    end subroutine

    ! The state at a step: whatever is restored must be exactly this.
    subroutine set(at)
        integer, intent(in) :: at
        integer :: i

        step = at
        bytes = [(int(i * at, int8), i = 0, 9)]
        shorts = reshape([(int(i + at, int16), i = 1, 9)], [3, 3])
        ids = [(int(i, int64) * 10_int64**9 + at, i = 1, 100)]
        weights = reshape([(real(i, real32) / at, i = 1, 24)], [2, 3, 4])
        field = reshape([(real(i * at, real64) / 7, i = 1, 600)], [30, 20])
        spectrum = [(cmplx(i, at, real32), i = 1, 5)]
        phase = cmplx(at, -at, real64)
        flags = [(mod(i + at, 2) == 0, i = 1, 6)]
        points = [(point(i * at, -i, at), i = 1, 7)]
        gaps = at
    end subroutine

    logical function is(at)
        integer, intent(in) :: at
        integer :: i

        is = step == at .and. all(bytes == [(int(i * at, int8), i = 0, 9)])
        is = is .and. all(shorts == reshape([(int(i + at, int16), i = 1, 9)], [3, 3]))
        is = is .and. all(ids == [(int(i, int64) * 10_int64**9 + at, i = 1, 100)])
        is = is .and. all(weights == reshape([(real(i, real32) / at, i = 1, 24)], [2, 3, 4]))
        is = is .and. all(field == reshape([(real(i * at, real64) / 7, i = 1, 600)], [30, 20]))
        is = is .and. all(spectrum == [(cmplx(i, at, real32), i = 1, 5)])
        is = is .and. phase == cmplx(at, -at, real64)
        is = is .and. all(flags .eqv. [(mod(i + at, 2) == 0, i = 1, 6)])
        is = is .and. all(points%x == [(i * at, i = 1, 7)]) .and. all(points%id == at)
        is = is .and. all(gaps(:, 2:3) == at)
    end function

    subroutine write_checkpoints()
        integer(c_int64_t) :: version
        integer(c_int) :: level, due

        call expect(sf_declare(job, "nx", "1024  "), SF_OK)
        call fails(sf_restart(job, SF_NEWEST), SF_MISSING, "no checkpoint")
        call set(3)
        call expect(sf_checkpoint(job, SF_NEXT, version), SF_OK)
        call check(version == 1, "the first version is 1")
        call expect(sf_wait(job, version, SF_LEVEL_LOCAL), SF_OK)
        call expect(sf_poll(job, version, level), SF_OK)
        call check(level == SF_LEVEL_LOCAL, "it is durable")
        call expect(sf_poll(job, version), SF_OK)
        call set(4)
        call expect(sf_checkpoint(job, 40_c_int64_t), SF_OK)
        call expect(sf_need_checkpoint(job, due), SF_OK)
        call expect(sf_point(job, version), SF_OK)
        call check(due == 0 .and. version == 0, "none is due")
    end subroutine

    subroutine read_checkpoints()
        integer(c_int64_t) :: version
        integer(c_size_t) :: count
        type(sf_checkpoint_info) :: list(1)
        character(:), allocatable :: text

        call fails(sf_restart_report(job, text), SF_MISSING, "sf_restart")
        call expect(sf_declare(job, "nx", "2048"), SF_OK)
        call fails(sf_restart(job, SF_NEWEST), SF_INVALID, "nx: 1024 then, 2048 now")
        call expect(sf_declare(job, "nx", "1024"), SF_OK)
        call expect(sf_restart(job, SF_NEWEST, version), SF_OK)
        call check(version == 40 .and. is(4), "the newest is back")
        call expect(sf_restart_report(job, text), SF_OK)
        call check(text == "restarted from checkpoint 40", text)
        call expect(sf_restart(job, 1_c_int64_t), SF_OK)
        call check(is(3), "the first is back")
        call expect(sf_list(job, list, count), SF_OK)
        call check(count == 2 .and. list(1)%version == 40, "both are listed, the newest first")
        call check(list(1)%level == SF_LEVEL_LOCAL .and. list(1)%ranks == 1, "level and ranks")
        call expect(sf_report(job, 40_c_int64_t, text), SF_OK)
        call check(index(text, "captured") > 0, text)
        call read_regions()
    end subroutine

    subroutine read_regions()
        integer(c_size_t) :: count
        integer(c_int64_t) :: length
        type(sf_region_info) :: regions(20)
        integer(c_int32_t) :: rank, ranks
        real(real64), target :: copy(600)
        integer(int8), target :: raw(4800)

        call expect(sf_regions(job, 40_c_int64_t, regions, count), SF_OK)
        call check(count == 11 .and. sf_text(regions(6)%name) == "field", "regions by name")
        call check(regions(6)%bytes == 4800 .and. regions(6)%elem == 8, "bytes and size")
        call expect(sf_region_bytes(job, 40_c_int64_t, "field", length), SF_OK)
        call check(length == 4800, "bytes of the region")
        call expect(sf_read_region(job, 40_c_int64_t, "field", copy), SF_OK)
        call check(copy(600) == real(2400, real64) / 7, "the last number")
        call expect(sf_read_region(job, 40_c_int64_t, "field", c_loc(raw), 4800_c_size_t), SF_OK)
        call check(all(transfer(raw, copy) == copy), "the same bytes")
        call fails(sf_read_region(job, 40_c_int64_t, "field", copy(1:10)), SF_INVALID, "80")
        call expect(sf_rank(job, rank, ranks), SF_OK)
        call check(rank == 0 .and. ranks == 1, "there is one rank")
        raw = 0
        call expect(sf_region_bytes_of(job, 40_c_int64_t, rank, "field", length), SF_OK)
        call expect(sf_read_region_of(job, 40_c_int64_t, rank, "field", c_loc(raw), 4800_c_size_t), SF_OK)
        call check(length == 4800 .and. all(transfer(raw, copy) == copy), "the same of rank 0")
    end subroutine

    subroutine wrong_calls()
        call fails(sf_protect(job, "rows", gaps(2:3, :)), SF_INVALID, "rows")
        call fails(sf_protect(job, "field", gaps(:, 1)), SF_INVALID, "is protected already")
        call fails(sf_unprotect(job, "nothing"), SF_MISSING, "nothing")
        call expect(sf_unprotect(job, "columns"), SF_OK)
        call fails(sf_checkpoint(none, SF_NEXT), SF_INVALID, "job is NULL")
        call fails(sf_init("codek=1", none), SF_INVALID, "codek")
        call check(sf_error_name(SF_MISSING) == "missing", "names of codes")
        call check(index(sf_version_string(), ".") > 0, "the version")
    end subroutine
end program
