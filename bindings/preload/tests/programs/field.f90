! Allocatable arrays that grow, pointers between records, and a file that stays open.
program field
  use, intrinsic :: iso_fortran_env, only: int64, real64, output_unit
  implicit none
  type :: cell
    real(real64) :: value = 0
    type(cell), pointer :: before => null()
  end type cell
  type(cell), pointer :: last, new
  real(real64), allocatable :: heat(:,:), next(:,:), history(:)
  real(real64) :: total
  integer :: step, steps, i, lines
  character(len=32) :: text
  character(len=256) :: path
  interface
    subroutine usleep(us) bind(c)
      use, intrinsic :: iso_c_binding, only: c_int
      integer(c_int), value :: us
    end subroutine usleep
  end interface

  call get_command_argument(1, text)
  read (text, *) steps
  call get_command_argument(2, path)
  open (unit=20, file=trim(path), status='replace', action='readwrite')
  allocate (heat(200, 200), next(200, 200), history(0))
  heat = 0
  heat(100, 100) = 1000
  nullify (last)
  print '(a)', 'begin'
  flush (output_unit)
  do step = 0, steps - 1
    next = heat
    do i = 2, 199
      next(2:199, i) = heat(2:199, i) + 0.2_real64 * (heat(1:198, i) + heat(3:200, i) &
        + heat(2:199, i - 1) + heat(2:199, i + 1) - 4 * heat(2:199, i))
    end do
    heat = next
    history = [history, sum(heat**2)]
    allocate (new)
    new%value = heat(100, 100)
    new%before => last
    last => new
    write (20, '(i0, 1x, es24.16)') step, heat(100, 101)
    print '(a, i0)', 'step ', step
    flush (output_unit)
    call usleep(2000)
  end do
  total = sum(history)
  do while (associated(last))
    total = total * 0.99_real64 + last%value
    new => last%before
    deallocate (last)
    last => new
  end do
  rewind (20)
  lines = 0
  do step = 0, steps - 1
    read (20, *) i
    if (i == step) lines = lines + 1
  end do
  print '(a, es24.16, 1x, i0)', 'answer ', total, lines
  stop 7
end program field
