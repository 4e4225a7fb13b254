! Uses all of the module isotherm and misuses it. Ends with status 0 where everything holds that must: without a runtime, under
! the stand-in (double.c), under the runtime.
program calls
  use, intrinsic :: iso_c_binding
  use isotherm
  implicit none
  logical :: absent

  absent = isotherm_version() == 0
  call memory_is_named
  call arrays_are_registered
  call phases_are_profiled

contains

  subroutine must(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) error stop what
  end subroutine

  ! What a call returns under a runtime; `isotherm_absent` without one.
  integer(c_int) function or_absent(status)
    integer(c_int), intent(in) :: status
    or_absent = merge(isotherm_absent, status, absent)
  end function

  subroutine memory_is_named
    real(c_double), pointer :: line(:), plane(:, :), volume(:, :, :)
    real(c_float), pointer :: floats(:)
    integer(c_int32_t), pointer :: whole(:, :)
    integer(c_int64_t), pointer :: long(:), none(:), huge_volume(:, :, :)
    integer :: stat
    call isotherm_allocate('line', line, [1000])
    call isotherm_allocate('plane', plane, [10, 20], stat)
    call must(stat == 0, 'an allocation sets stat')
    call isotherm_allocate('volume', volume, [2, 3, 4])
    call isotherm_allocate('floats', floats, [1000])
    call isotherm_allocate('whole', whole, [10, 20])
    call isotherm_allocate('long', long, [1000])
    call isotherm_allocate('none', none, [-3])
    call must(all(shape(plane) == [10, 20]) .and. all(shape(volume) == [2, 3, 4]) .and. size(none) == 0, 'shapes')
    line = 1; plane = 2; volume = 3; floats = 4; whole = 5; long = 6
    call must(nint(sum(line)) == 1000 .and. nint(sum(plane)) == 400 .and. nint(sum(volume)) == 72, 'arrays do not overlap')
    call must(nint(sum(floats)) == 4000 .and. sum(whole) == 1000 .and. sum(long) == 6000, 'arrays do not overlap')
    call isotherm_allocate('large', huge_volume, [2000000000, 2000000000, 2000000000], stat)
    call must(stat /= 0 .and. .not. associated(huge_volume), 'memory that there is not')
    call isotherm_deallocate(line)
    call isotherm_deallocate(line)
    call must(.not. associated(line), 'freed memory is no longer associated')
    call isotherm_deallocate(plane)
    call isotherm_deallocate(volume)
    call isotherm_deallocate(floats)
    call isotherm_deallocate(whole)
    call isotherm_deallocate(long)
    call isotherm_deallocate(none)
  end subroutine

  ! Memory that no allocator gave, for an array of this shape.
  function mapped(extents) result(array)
    integer, intent(in) :: extents(2)
    real(c_double), pointer, contiguous :: array(:, :)
    interface
      function mmap(address, bytes, protection, flags, file, offset) bind(c)
        import :: c_int, c_intptr_t, c_long, c_ptr, c_size_t
        integer(c_intptr_t), value :: address
        integer(c_size_t), value :: bytes
        integer(c_int), value :: protection, flags, file
        integer(c_long), value :: offset
        type(c_ptr) :: mmap
      end function
    end interface
    integer(c_size_t) :: bytes
    bytes = 8_c_size_t * product(extents)
    ! Read and write, private, of no file.
    call c_f_pointer(mmap(0_c_intptr_t, bytes, 3_c_int, 34_c_int, -1_c_int, 0_c_long), array, extents)
  end function

  subroutine arrays_are_registered
    real(c_double), pointer, contiguous :: grid(:, :)
    complex(c_double), target, save :: waves(100, 100, 100)
    real(c_double), allocatable, target :: heap(:)
    integer(c_int) :: status
    grid => mapped([1000, 1000])
    call must(isotherm_register('grid', grid) == or_absent(isotherm_ok), 'an array is registered')
    call must(isotherm_register('column', grid(:, 3)) == or_absent(isotherm_overlap), 'a part of it is not')
    call must(isotherm_hint(grid, isotherm_hot) == or_absent(isotherm_ok), 'a hint')
    call must(isotherm_unregister(grid) == or_absent(isotherm_ok), 'an array is unregistered')
    call must(isotherm_unregister(grid) == or_absent(isotherm_unknown), 'it is not unregistered twice')
    call must(isotherm_register('grid  ', grid) == or_absent(isotherm_ok), 'it is registered again')
    status = isotherm_register('waves', waves)
    call must(any(status == [or_absent(isotherm_ok), isotherm_not_movable]), 'static data of any type')
    allocate (heap(1000))
    status = isotherm_register('heap', heap)
    call must(any(status == [or_absent(isotherm_ok), isotherm_overlap]), 'an allocated array has a name already')
    if (status == isotherm_ok) status = isotherm_unregister(heap)
  end subroutine

  subroutine phases_are_profiled
    type(isotherm_options) :: options
    type(isotherm_result) :: answer
    type(isotherm_statistics) :: statistics
    type(isotherm_object) :: object
    integer(c_int) :: status
    call must(c_sizeof(object) == object%size, 'size of an object')
    call must(c_sizeof(options) == options%size .and. c_sizeof(answer) == answer%size, 'sizes of the types')
    call must(c_sizeof(statistics) == statistics%size, 'size of the statistics')
    status = isotherm_profile_start()
    call must(absent .eqv. status == isotherm_absent, 'a profile begins')
    status = isotherm_read_statistics(statistics)
    call must(status == or_absent(isotherm_ok), 'statistics')
    status = isotherm_profile_stop()
    call must(absent .eqv. status == isotherm_absent, 'a profile ends')
    options%share = 0.5
    options%policy = isotherm_policy_atmem
    status = isotherm_optimize(options, answer)
    call must(absent .eqv. status == isotherm_absent, 'an optimization')
    call must(all(answer%stayed_bytes == 0) .or. .not. absent, 'without a runtime nothing stays for a reason')
    if (answer%promoted_bytes == 1 .and. answer%demoted_bytes == 2) then ! The stand-in's.
      call must(answer%capacity_bytes == 9 .and. answer%stayed_bytes(isotherm_stayed_capacity) == 10, 'a capacity and a reason')
      call must(answer%stayed_bytes(isotherm_stayed_refused) == 17, 'the last reason')
      call must(answer%frequency == 18, 'a frequency')
      call must(isotherm_read_object(0_c_int64_t, object) == isotherm_ok, 'an object')
      call must(isotherm_name_of(object) == 'ranks' .and. object%bytes == 2, 'its name and its bytes')
      call must(isotherm_read_object(1_c_int64_t, object) == isotherm_ok, 'another object')
      call must(isotherm_name_of(object) == '' .and. object%stayed_bytes(isotherm_stayed_refused) == 17, 'its reasons')
    end if
    call must(isotherm_read_object(huge(0_c_int64_t), object) == or_absent(isotherm_unknown), 'no object')
    status = isotherm_profile_start(frequency=2000_c_int32_t)
    call must((absent .eqv. status == isotherm_absent) .and. status /= isotherm_invalid, 'a profile of a frequency begins')
    status = isotherm_profile_stop()
    call must(isotherm_profile_start(20001_c_int32_t) == or_absent(isotherm_invalid), 'a frequency that is too high')
    options%share = 7
    call must(isotherm_optimize(options) == or_absent(isotherm_invalid), 'a share above 1')
    call must(len(isotherm_status_text(isotherm_overlap)) > 1, 'a status has a text')
    call must(len(isotherm_reason_text(isotherm_stayed_shared)) > 1, 'a reason has a text')
  end subroutine
end program
