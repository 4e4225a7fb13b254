! Every way to allocate: each object's line ends in its name. Prints a sum and, if it is asked for places, the
! 2 MiB that hold each object (see main.c).
program all_ways
  use iso_c_binding, only: c_loc, c_intptr_t
  implicit none
  type :: holder
    real(8), allocatable :: values(:)
  end type
  real(8), allocatable, target :: simple(:), with_status(:), copied(:), moulded(:)
  real(8), pointer :: pointed(:), pointed_copy(:)
  type(holder), target :: component
  character(len=8) :: word
  integer :: n, status
  n = 400
  allocate (simple(n)) ! simple
  simple = 1
  allocate (with_status(n), stat=status) ! with_status
  with_status = 2
  allocate (copied, source=simple) ! copied
  allocate (moulded, mold=simple) ! moulded
  moulded = 3
  allocate (pointed(n)) ! pointed
  pointed = 4
  allocate (pointed_copy, source=pointed) ! pointed_copy
  allocate (component%values(n)) ! component
  component%values = 15
  print '(a, f4.1)', 'sum ', simple(1) + with_status(n) + copied(1) + moulded(n) + pointed(1) + pointed_copy(n) &
      + component%values(1)
  call get_command_argument(1, word)
  if (word == 'places') then
    call tell('simple', transfer(c_loc(simple), 0_c_intptr_t))
    call tell('with_status', transfer(c_loc(with_status), 0_c_intptr_t))
    call tell('copied', transfer(c_loc(copied), 0_c_intptr_t))
    call tell('moulded', transfer(c_loc(moulded), 0_c_intptr_t))
    call tell('pointed', transfer(c_loc(pointed), 0_c_intptr_t))
    call tell('pointed_copy', transfer(c_loc(pointed_copy), 0_c_intptr_t))
    call tell('component', transfer(c_loc(component%values), 0_c_intptr_t))
  end if
  deallocate (simple, with_status, copied, moulded, pointed, pointed_copy, component%values)
contains
  subroutine tell(name, address)
    character(len=*), intent(in) :: name
    integer(c_intptr_t), intent(in) :: address
    print '(a, 1x, i0)', name, address / 2**21
  end subroutine
end program
