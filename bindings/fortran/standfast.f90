! Standfast for Fortran: checkpoint/restart for long-running programs.
!
!     use standfast
!     type(sf_job) :: job
!     real(8), allocatable, target :: field(:, :)
!     integer, target :: step
!
!     call check(sf_init_comm(MPI_COMM_WORLD, "job=heat", job))       without MPI: sf_init
!     call check(sf_protect(job, "field", field))
!     call check(sf_protect(job, "step", step))
!     restarted = sf_restart(job, SF_NEWEST)                          SF_MISSING: a fresh start
!     do while (step < steps)
!         ...
!         if (mod(step, 100) == 0) call check(sf_checkpoint(job, SF_NEXT))
!     end do
!     call check(sf_finalize(job))
!
! The functions are those of standfast.h, where each is described; all return SF_OK or a negative
! code. Texts are Fortran's. What C may leave out as NULL is optional here.
!
! Protected variables must have the attribute `target` (or `pointer`): without it the compiler may
! keep them in registers while a checkpoint looks at memory. The compiler refuses others: "There is
! no specific function". An array must lie in one piece: of a section with gaps it is said that its
! start is NULL.
!
! Compile it with the program's own compiler. MPI programs also compile standfast_mpi.f90 (for
! sf_init_comm) and standfast_mpi.c; others do not use sf_init_comm and need neither.
!
! Data: Fortran texts, arrays -> texts with a 0 at the end, addresses, counts -> libstandfast.
module standfast
    use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_int, c_int32_t, &
        c_int64_t, c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t, c_sizeof
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    implicit none
    private

    public :: sf_job, sf_checkpoint_info, sf_region_info
    public :: sf_init, sf_init_comm, sf_declare, sf_finalize, sf_close
    public :: sf_protect, sf_unprotect, sf_exclude, sf_include
    public :: sf_alloc_protected, sf_alloc_protected_aligned, sf_realloc_protected
    public :: sf_free_protected, sf_find_protected, sf_alloc_from_checkpoint
    public :: sf_checkpoint, sf_point, sf_need_checkpoint, sf_poll, sf_wait, sf_list, sf_report
    public :: sf_restart, sf_restart_report, sf_regions, sf_region_bytes, sf_read_region
    public :: sf_rank, sf_region_bytes_of, sf_read_region_of
    public :: sf_last_error, sf_error_name, sf_version_string, sf_text

    ! Codes (sf_error).
    integer(c_int), parameter, public :: SF_OK = 0, SF_CORRUPT = -10, SF_MISSING = -11, &
        SF_BUSY = -12, SF_TRANSIENT = -13, SF_FULL = -14, SF_DENIED = -15, SF_IO = -16, &
        SF_UNSUPPORTED = -17, SF_INVALID = -18, SF_BUG = -19, &
        SF_EXHAUSTED = -20

    ! Levels (sf_level).
    integer(c_int), parameter, public :: SF_LEVEL_MEMORY = 1, SF_LEVEL_LOCAL = 2, &
        SF_LEVEL_RING = 3, SF_LEVEL_GLOBAL = 4

    ! Types of elements (sf_type), for sf_protect with an address.
    integer(c_int), parameter, public :: SF_BYTE = 0, SF_I8 = 1, SF_U8 = 2, SF_I16 = 3, &
        SF_U16 = 4, SF_I32 = 5, SF_U32 = 6, SF_I64 = 7, SF_U64 = 8, SF_F16 = 9, SF_BF16 = 10, &
        SF_F32 = 11, SF_F64 = 12, SF_C32 = 13, SF_C64 = 14

    ! For sf_checkpoint: the version after the largest so far.
    integer(c_int64_t), parameter, public :: SF_NEXT = 0
    ! For sf_restart: the newest checkpoint that is whole.
    integer(c_int64_t), parameter, public :: SF_NEWEST = 0
    ! Room for the name of a region, with the 0 at its end.
    integer, parameter, public :: SF_NAME_BYTES = 256

    ! An open job; C's pointer.
    type, bind(C) :: sf_job
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! What is known of a checkpoint, for sf_list.
    type, bind(C) :: sf_checkpoint_info
        integer(c_size_t) :: struct_bytes
        integer(c_int64_t) :: version, sequence, taken_ns, captured_bytes, stored_bytes, pages, &
            zero_pages, duplicate_pages, old_pages, new_pages, blocked_ns, total_ns
        integer(c_int32_t) :: level, ranks
        integer(c_int64_t) :: remote_pages, rank_bytes_max
    end type

    ! A region of a checkpoint, for sf_regions. Its name as a text: sf_text(info%name).
    type, bind(C) :: sf_region_info
        integer(c_size_t) :: struct_bytes
        character(kind=c_char) :: name(SF_NAME_BYTES)
        integer(c_int64_t) :: bytes
        integer(c_int32_t) :: elem
        integer(c_int32_t) :: reserved
    end type

    ! sf_protect(job, name, variable): a number, a logical or an array of them, of any rank.
    ! sf_protect(job, name, start, count, type): so many elements of a type, from an address on.
    interface sf_protect
        module procedure protect_address
        module procedure protect_int8
        module procedure protect_int16
        module procedure protect_int32
        module procedure protect_int64
        module procedure protect_real32
        module procedure protect_real64
        module procedure protect_complex32
        module procedure protect_complex64
        module procedure protect_logical
    end interface

    ! sf_read_region(job, version, name, variable): reads one region, protected or not.
    ! sf_read_region(job, version, name, start, bytes): the same, from an address on.
    interface sf_read_region
        module procedure read_region_address
        module procedure read_region_int8
        module procedure read_region_int16
        module procedure read_region_int32
        module procedure read_region_int64
        module procedure read_region_real32
        module procedure read_region_real64
        module procedure read_region_complex32
        module procedure read_region_complex64
        module procedure read_region_logical
    end interface

    ! Opens a job of all ranks of a communicator, which is the handle of `mpi`, or with `mpi_f08`
    ! its component: comm%MPI_VAL. Its body is in standfast_mpi.f90.
    interface
        module function sf_init_comm(comm, options, job) result(code)
            integer, intent(in) :: comm
            character(*), intent(in) :: options
            type(sf_job), intent(out) :: job
            integer(c_int) :: code
        end function
    end interface

    ! Functions that are the same in both languages.
    interface
        integer(c_int) function sf_finalize(job) bind(C, name="sf_finalize")
            import :: c_int, sf_job
            type(sf_job), value :: job
        end function

        integer(c_int) function sf_close(job) bind(C, name="sf_close")
            import :: c_int, sf_job
            type(sf_job), value :: job
        end function

        integer(c_int) function sf_checkpoint(job, version, out_version) &
                bind(C, name="sf_checkpoint")
            import :: c_int, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_int64_t), intent(out), optional :: out_version
        end function

        integer(c_int) function sf_point(job, out_version) bind(C, name="sf_point")
            import :: c_int, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), intent(out), optional :: out_version
        end function

        integer(c_int) function sf_need_checkpoint(job, due) bind(C, name="sf_need_checkpoint")
            import :: c_int, sf_job
            type(sf_job), value :: job
            integer(c_int), intent(out) :: due
        end function

        integer(c_int) function sf_poll(job, version, level) bind(C, name="sf_poll")
            import :: c_int, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_int), intent(out), optional :: level
        end function

        integer(c_int) function sf_wait(job, version, level) bind(C, name="sf_wait")
            import :: c_int, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_int), value :: level
        end function

        integer(c_int) function sf_restart(job, version, restored) bind(C, name="sf_restart")
            import :: c_int, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_int64_t), intent(out), optional :: restored
        end function

        integer(c_int) function sf_rank(job, rank, size) bind(C, name="sf_rank")
            import :: c_int, c_int32_t, sf_job
            type(sf_job), value :: job
            integer(c_int32_t), intent(out), optional :: rank, size
        end function
    end interface

    ! Functions whose texts and lists need a hand.
    interface
        integer(c_int) function c_init(options, job) bind(C, name="sf_init")
            import :: c_char, c_int, sf_job
            character(kind=c_char), intent(in) :: options(*)
            type(sf_job), intent(out) :: job
        end function

        integer(c_int) function c_protect_typed(job, name, start, count, type) &
                bind(C, name="sf_protect_typed")
            import :: c_char, c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: start
            integer(c_size_t), value :: count
            integer(c_int), value :: type
        end function

        integer(c_int) function c_declare(job, name, value) bind(C, name="sf_declare")
            import :: c_char, c_int, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*), value(*)
        end function

        ! Keeps bytes out of all later checkpoints; sf_include takes that back.
        integer(c_int) function sf_exclude(job, start, bytes) bind(C, name="sf_exclude")
            import :: c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            type(c_ptr), value :: start
            integer(c_size_t), value :: bytes
        end function

        integer(c_int) function sf_include(job, start, bytes) bind(C, name="sf_include")
            import :: c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            type(c_ptr), value :: start
            integer(c_size_t), value :: bytes
        end function

        integer(c_int) function c_unprotect(job, name) bind(C, name="sf_unprotect")
            import :: c_char, c_int, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
        end function

        integer(c_int) function c_alloc_protected(job, name, bytes, elem, start) &
                bind(C, name="sf_alloc_protected")
            import :: c_char, c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
            integer(c_size_t), value :: bytes
            integer(c_int), value :: elem
            type(c_ptr), intent(out) :: start
        end function

        integer(c_int) function c_alloc_protected_aligned(job, name, bytes, elem, alignment, start) &
                bind(C, name="sf_alloc_protected_aligned")
            import :: c_char, c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
            integer(c_size_t), value :: bytes
            integer(c_int), value :: elem
            integer(c_size_t), value :: alignment
            type(c_ptr), intent(out) :: start
        end function

        integer(c_int) function c_realloc_protected(job, name, bytes, start) &
                bind(C, name="sf_realloc_protected")
            import :: c_char, c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
            integer(c_size_t), value :: bytes
            type(c_ptr), intent(out) :: start
        end function

        integer(c_int) function c_free_protected(job, name) bind(C, name="sf_free_protected")
            import :: c_char, c_int, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
        end function

        integer(c_int) function c_find_protected(job, name, start, bytes) &
                bind(C, name="sf_find_protected")
            import :: c_char, c_int, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: start
            integer(c_size_t), intent(out) :: bytes
        end function

        ! Allocates what a checkpoint has and this program has not; `count`: how many regions.
        integer(c_int) function sf_alloc_from_checkpoint(job, version, count) &
                bind(C, name="sf_alloc_from_checkpoint")
            import :: c_int, c_int64_t, c_size_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_size_t), intent(out) :: count
        end function

        integer(c_int) function c_list(job, buf, capacity, count) bind(C, name="sf_list")
            import :: c_int, c_size_t, sf_checkpoint_info, sf_job
            type(sf_job), value :: job
            type(sf_checkpoint_info), intent(inout) :: buf(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: count
        end function

        integer(c_int) function c_report(job, version, buf, capacity, needed) &
                bind(C, name="sf_report")
            import :: c_char, c_int, c_int64_t, c_size_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            character(kind=c_char), intent(inout) :: buf(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: needed
        end function

        integer(c_int) function c_restart_report(job, buf, capacity, needed) &
                bind(C, name="sf_restart_report")
            import :: c_char, c_int, c_size_t, sf_job
            type(sf_job), value :: job
            character(kind=c_char), intent(inout) :: buf(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: needed
        end function

        integer(c_int) function c_regions(job, version, buf, capacity, count) &
                bind(C, name="sf_regions")
            import :: c_int, c_int64_t, c_size_t, sf_job, sf_region_info
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            type(sf_region_info), intent(inout) :: buf(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: count
        end function

        integer(c_int) function c_region_bytes(job, version, name, bytes) &
                bind(C, name="sf_region_bytes")
            import :: c_char, c_int, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), intent(out) :: bytes
        end function

        integer(c_int) function c_read_region(job, version, name, buf, bytes) &
                bind(C, name="sf_read_region")
            import :: c_char, c_int, c_int64_t, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: buf
            integer(c_size_t), value :: bytes
        end function

        integer(c_int) function c_region_bytes_of(job, version, rank, name, bytes) &
                bind(C, name="sf_region_bytes_of")
            import :: c_char, c_int, c_int32_t, c_int64_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_int32_t), value :: rank
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), intent(out) :: bytes
        end function

        integer(c_int) function c_read_region_of(job, version, rank, name, buf, bytes) &
                bind(C, name="sf_read_region_of")
            import :: c_char, c_int, c_int32_t, c_int64_t, c_ptr, c_size_t, sf_job
            type(sf_job), value :: job
            integer(c_int64_t), value :: version
            integer(c_int32_t), value :: rank
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: buf
            integer(c_size_t), value :: bytes
        end function

        type(c_ptr) function c_last_error() bind(C, name="sf_last_error")
            import :: c_ptr
        end function

        type(c_ptr) function c_error_name(code) bind(C, name="sf_error_name")
            import :: c_int, c_ptr
            integer(c_int), value :: code
        end function

        type(c_ptr) function c_version_string() bind(C, name="sf_version_string")
            import :: c_ptr
        end function
    end interface

contains

    integer(c_int) function sf_init(options, job) result(code)
        character(*), intent(in) :: options
        type(sf_job), intent(out) :: job

        code = c_init(options // c_null_char, job)
    end function

    ! A value on which the result depends, without the blanks at its end.
    integer(c_int) function sf_declare(job, name, value) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name, value

        code = c_declare(job, name // c_null_char, trim(value) // c_null_char)
    end function

    integer(c_int) function sf_unprotect(job, name) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name

        code = c_unprotect(job, name // c_null_char)
    end function

    ! Memory that belongs to the job, zeroed and protected: c_f_pointer makes an array of `start`.
    integer(c_int) function sf_alloc_protected(job, name, bytes, elem, start) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(c_size_t), intent(in) :: bytes
        integer(c_int), intent(in) :: elem
        type(c_ptr), intent(out) :: start

        code = c_alloc_protected(job, name // c_null_char, bytes, elem, start)
    end function

    integer(c_int) function sf_alloc_protected_aligned(job, name, bytes, elem, alignment, start) &
            result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(c_size_t), intent(in) :: bytes
        integer(c_int), intent(in) :: elem
        integer(c_size_t), intent(in) :: alignment
        type(c_ptr), intent(out) :: start

        code = c_alloc_protected_aligned(job, name // c_null_char, bytes, elem, alignment, start)
    end function

    ! Grows or shrinks it; it may move.
    integer(c_int) function sf_realloc_protected(job, name, bytes, start) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(c_size_t), intent(in) :: bytes
        type(c_ptr), intent(out) :: start

        code = c_realloc_protected(job, name // c_null_char, bytes, start)
    end function

    integer(c_int) function sf_free_protected(job, name) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name

        code = c_free_protected(job, name // c_null_char)
    end function

    ! Where it is, for instance after sf_alloc_from_checkpoint.
    integer(c_int) function sf_find_protected(job, name, start, bytes) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        type(c_ptr), intent(out) :: start
        integer(c_size_t), intent(out) :: bytes

        code = c_find_protected(job, name // c_null_char, start, bytes)
    end function

    ! As many of the newest checkpoints as `buf` has room for; `count` is the number of all.
    integer(c_int) function sf_list(job, buf, count) result(code)
        type(sf_job), intent(in) :: job
        type(sf_checkpoint_info), contiguous, intent(out) :: buf(:)
        integer(c_size_t), intent(out) :: count

        if (size(buf) > 0) buf(1)%struct_bytes = c_sizeof(buf(1))
        code = c_list(job, buf, size(buf, kind=c_size_t), count)
    end function

    ! As many regions as `buf` has room for; `count` is the number of all.
    integer(c_int) function sf_regions(job, version, buf, count) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        type(sf_region_info), contiguous, intent(out) :: buf(:)
        integer(c_size_t), intent(out) :: count

        if (size(buf) > 0) buf(1)%struct_bytes = c_sizeof(buf(1))
        code = c_regions(job, version, buf, size(buf, kind=c_size_t), count)
    end function

    integer(c_int) function sf_report(job, version, text) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(:), allocatable, intent(out) :: text
        character(kind=c_char), allocatable :: buf(:)
        integer(c_size_t) :: needed

        allocate(buf(0))
        code = c_report(job, version, buf, 0_c_size_t, needed)
        if (code /= SF_OK) return
        deallocate(buf)
        allocate(buf(needed))
        code = c_report(job, version, buf, size(buf, kind=c_size_t), needed)
        if (code == SF_OK) text = sf_text(buf)
    end function

    integer(c_int) function sf_restart_report(job, text) result(code)
        type(sf_job), intent(in) :: job
        character(:), allocatable, intent(out) :: text
        character(kind=c_char), allocatable :: buf(:)
        integer(c_size_t) :: needed

        allocate(buf(0))
        code = c_restart_report(job, buf, 0_c_size_t, needed)
        if (code /= SF_OK) return
        deallocate(buf)
        allocate(buf(needed))
        code = c_restart_report(job, buf, size(buf, kind=c_size_t), needed)
        if (code == SF_OK) text = sf_text(buf)
    end function

    integer(c_int) function sf_region_bytes(job, version, name, bytes) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        integer(c_int64_t), intent(out) :: bytes

        code = c_region_bytes(job, version, name // c_null_char, bytes)
    end function

    integer(c_int) function sf_region_bytes_of(job, version, rank, name, bytes) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        integer(c_int32_t), intent(in) :: rank
        character(*), intent(in) :: name
        integer(c_int64_t), intent(out) :: bytes

        code = c_region_bytes_of(job, version, rank, name // c_null_char, bytes)
    end function

    ! Reads a region of any rank, from an address on.
    integer(c_int) function sf_read_region_of(job, version, rank, name, start, bytes) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        integer(c_int32_t), intent(in) :: rank
        character(*), intent(in) :: name
        type(c_ptr), intent(in) :: start
        integer(c_size_t), intent(in) :: bytes

        code = c_read_region_of(job, version, rank, name // c_null_char, start, bytes)
    end function

    function sf_last_error() result(text)
        character(:), allocatable :: text

        text = text_at(c_last_error())
    end function

    function sf_error_name(code) result(text)
        integer(c_int), intent(in) :: code
        character(:), allocatable :: text

        text = text_at(c_error_name(code))
    end function

    function sf_version_string() result(text)
        character(:), allocatable :: text

        text = text_at(c_version_string())
    end function

    ! The text in characters of C, up to the 0 at its end.
    pure function sf_text(characters) result(text)
        character(kind=c_char), intent(in) :: characters(:)
        character(:), allocatable :: text
        integer :: length, i

        length = 0
        do while (length < size(characters))
            if (characters(length + 1) == c_null_char) exit
            length = length + 1
        end do
        allocate(character(length) :: text)
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function

    ! The text at an address. It belongs to the library and is copied.
    function text_at(address) result(text)
        type(c_ptr), intent(in) :: address
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer(c_size_t) :: length

        interface
            integer(c_size_t) function strlen(address) bind(C, name="strlen")
                import :: c_ptr, c_size_t
                type(c_ptr), value :: address
            end function
        end interface

        length = strlen(address)
        call c_f_pointer(address, characters, [length])
        text = sf_text(characters)
    end function

    integer(c_int) function protect_address(job, name, start, count, type) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        type(c_ptr), intent(in) :: start
        integer(c_size_t), intent(in) :: count
        integer(c_int), intent(in) :: type

        code = c_protect_typed(job, name // c_null_char, start, count, type)
    end function

    integer(c_int) function read_region_address(job, version, name, start, bytes) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        type(c_ptr), intent(in) :: start
        integer(c_size_t), intent(in) :: bytes

        code = c_read_region(job, version, name // c_null_char, start, bytes)
    end function

    ! From here on: the same two functions for every type. An array with gaps has no start.

    integer(c_int) function protect_int8(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(int8), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_I8)
    end function

    integer(c_int) function read_region_int8(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        integer(int8), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_int16(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(int16), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_I16)
    end function

    integer(c_int) function read_region_int16(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        integer(int16), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_int32(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(int32), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_I32)
    end function

    integer(c_int) function read_region_int32(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        integer(int32), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_int64(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        integer(int64), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_I64)
    end function

    integer(c_int) function read_region_int64(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        integer(int64), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_real32(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        real(real32), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_F32)
    end function

    integer(c_int) function read_region_real32(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        real(real32), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_real64(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        real(real64), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_F64)
    end function

    integer(c_int) function read_region_real64(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        real(real64), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_complex32(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        complex(real32), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_C32)
    end function

    integer(c_int) function read_region_complex32(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        complex(real32), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_complex64(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        complex(real64), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, size(variable, kind=c_size_t), SF_C64)
    end function

    integer(c_int) function read_region_complex64(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        complex(real64), pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    integer(c_int) function protect_logical(job, name, variable) result(code)
        type(sf_job), intent(in) :: job
        character(*), intent(in) :: name
        logical, pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = protect_address(job, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)), SF_BYTE)
    end function

    integer(c_int) function read_region_logical(job, version, name, variable) result(code)
        type(sf_job), intent(in) :: job
        integer(c_int64_t), intent(in) :: version
        character(*), intent(in) :: name
        logical, pointer, intent(in) :: variable(..)
        type(c_ptr) :: start

        start = c_null_ptr
        if (is_contiguous(variable)) start = c_loc(variable)
        code = read_region_address(job, version, name, start, &
            bytes_of(size(variable, kind=c_size_t), storage_size(variable)))
    end function

    pure integer(c_size_t) function bytes_of(count, bits)
        integer(c_size_t), intent(in) :: count
        integer, intent(in) :: bits

        bytes_of = count * (bits / 8)
    end function
end module
