! Memory that belongs to the job, and checkpoints that a signal asks for:  grown write|read STORE
! "write" allocates, grows and frees; "read" knows nothing of that and gets it all back.
program grown
    use standfast
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    implicit none

    interface
        integer(c_int) function c_raise(signal) bind(C, name="raise")
            import :: c_int
            integer(c_int), value :: signal
        end function
    end interface

    integer(c_int), parameter :: USR1 = 10
    type(sf_job) :: job
    character(1000) :: mode, store

    call get_command_argument(1, mode)
    call get_command_argument(2, store)
    call ok(sf_init("job=grown; lab.pool=4MiB; signal=USR1; store=" // trim(store), job))
    if (mode == "write") then
        call write_all()
    else
        call read_all()
    end if
    if (mode == "write") then
        call ok(sf_close(job))
    else
        call ok(sf_finalize(job))
    end if
    print "(a)", "done"

contains

    subroutine ok(code)
        integer(c_int), intent(in) :: code

        if (code == SF_OK) return
        write (error_unit, *) "code ", code, ": ", sf_last_error()
        error stop
    end subroutine

    subroutine check(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what

        if (condition) return
        write (error_unit, *) what
        error stop
    end subroutine

    subroutine write_all()
        real(real64), pointer :: field(:)
        integer(int32), pointer :: ids(:)
        type(c_ptr) :: start
        integer :: i

        call ok(sf_alloc_protected(job, "field", 8000_c_size_t, 8_c_int, start))
        call c_f_pointer(start, field, [1000])
        call check(all(field == 0), "memory of the job is zeroed")
        field = [(real(i, real64) / 3, i = 1, 1000)]
        call ok(sf_realloc_protected(job, "field", 16000_c_size_t, start))
        call c_f_pointer(start, field, [2000])
        call check(field(1000) == real(1000, real64) / 3 .and. field(2000) == 0, "it has grown")
        field(1001:) = 7
        call ok(sf_alloc_protected_aligned(job, "ids", 4000_c_size_t, 4_c_int, 65536_c_size_t, start))
        call check(mod(transfer(start, 0_c_intptr_t), 65536_c_intptr_t) == 0, "it is aligned")
        call c_f_pointer(start, ids, [1000])
        ids = [(i, i = 1, 1000)]
        call ok(sf_alloc_protected(job, "scratch", 100_c_size_t, 0_c_int, start))
        call ok(sf_free_protected(job, "scratch"))
        call take_by_signal()
        field = -1
        ids = -1
    end subroutine

    subroutine take_by_signal()
        integer(c_int64_t) :: version

        call ok(sf_point(job, version))
        call check(version == 0, "nobody has asked")
        call check(c_raise(USR1) == 0, "a signal")
        call ok(sf_point(job, version))
        call check(version == 1, "the signal has asked")
        call ok(sf_point(job, version))
        call check(version == 0, "once")
        call ok(sf_wait(job, 1_c_int64_t, SF_LEVEL_LOCAL))
    end subroutine

    subroutine read_all()
        real(real64), pointer :: field(:)
        integer(int32), pointer :: ids(:)
        type(c_ptr) :: start
        integer(c_size_t) :: count, bytes
        integer :: i

        call ok(sf_alloc_from_checkpoint(job, SF_NEWEST, count))
        call check(count == 2, "what was freed does not come back")
        call ok(sf_restart(job, SF_NEWEST))
        call ok(sf_find_protected(job, "field", start, bytes))
        call check(bytes == 16000, "as long as it had grown")
        call c_f_pointer(start, field, [2000])
        call check(all(field(:1000) == [(real(i, real64) / 3, i = 1, 1000)]), "the first half")
        call check(all(field(1001:) == 7), "the second half")
        call ok(sf_find_protected(job, "ids", start, bytes))
        call c_f_pointer(start, ids, [1000])
        call check(bytes == 4000 .and. all(ids == [(i, i = 1, 1000)]), "the numbers")
    end subroutine
end program
