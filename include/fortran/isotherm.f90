! Isotherm's interface for Fortran programs: names for arrays, profiles of phases, placement on request; the functions of
! isotherm.h. Compile this file with the program, by the program's compiler: modules of two compilers do not go together.
!
! Needs no library. Where Isotherm's runtime is not loaded, `isotherm_allocate` takes memory of the C library, and every
! other function returns `isotherm_absent`.
module isotherm
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! Version of this module, as ISOTHERM_HEADER_VERSION.
  integer(c_int), parameter, public :: isotherm_header_version = 103
  ! enum isotherm_status
  integer(c_int), parameter, public :: isotherm_ok = 0, isotherm_absent = 1, isotherm_no_observer = 2, &
      isotherm_no_samples = 3, isotherm_busy = 4, isotherm_invalid = 5, isotherm_overlap = 6, isotherm_unknown = 7, &
      isotherm_not_movable = 8, isotherm_no_room = 9, isotherm_failed = 10
  ! enum isotherm_hint
  integer(c_int), parameter, public :: isotherm_hot = 0, isotherm_cold = 1, isotherm_streaming = 2, isotherm_unknown_heat = 3
  ! enum isotherm_reason
  integer, parameter, public :: isotherm_stayed_capacity = 0, isotherm_stayed_not_hot = 1, isotherm_stayed_not_touched = 2, &
      isotherm_stayed_not_movable = 3, isotherm_stayed_no_room = 4, isotherm_stayed_in_use = 5, isotherm_stayed_shared = 6, &
      isotherm_stayed_refused = 7, isotherm_reasons = 8
  ! enum isotherm_policy
  integer(c_int32_t), parameter, public :: isotherm_policy_default = 0, isotherm_policy_atmem = 1, isotherm_policy_thermos = 2

  ! As isotherm_options%fast_bytes: nothing is to be fast, and what is fast leaves.
  integer(c_int64_t), parameter, public :: isotherm_no_fast_bytes = 1

  ! What `isotherm_optimize` is to do.
  type, bind(c), public :: isotherm_options
    integer(c_int32_t) :: size = 24
    integer(c_int32_t) :: policy = isotherm_policy_default
    ! Most bytes of fast memory, in whole pages; isotherm_no_fast_bytes for none, 0: as `share` says.
    integer(c_int64_t) :: fast_bytes = 0
    ! Most fast memory, as a share (0 to 1) of the registered and recorded data; 0: the capacity of the run.
    real(c_double) :: share = 0
  end type

  ! What `isotherm_optimize` did; times in nanoseconds. Bytes in slow memory, or not moved, are in stayed_bytes(isotherm_stayed_...).
  type, bind(c), public :: isotherm_result
    integer(c_int32_t) :: size = 152
    integer(c_int32_t) :: status = isotherm_absent
    integer(c_int64_t) :: promoted_bytes = 0, demoted_bytes = 0, placed_bytes = 0, failed_bytes = 0, selected_bytes = 0
    integer(c_int64_t) :: samples = 0, selection_ns = 0, migration_ns = 0
    integer(c_int64_t) :: capacity_bytes = 0
    integer(c_int64_t) :: stayed_bytes(0:isotherm_reasons - 1) = 0
    ! Samples a second of each thread's processor time; 0 where no timer sampled.
    integer(c_int64_t) :: frequency = 0
  end type

  ! What the last optimization did to one data object; its name is isotherm_name_of(object), empty where the program gave none.
  type, bind(c), public :: isotherm_object
    integer(c_int32_t) :: size = 208
    integer(c_int32_t) :: reserved = 0
    character(kind=c_char) :: name(64) = c_null_char
    integer(c_int64_t) :: address = 0, bytes = 0, samples = 0, resident_bytes = 0, fast_bytes = 0
    integer(c_int64_t) :: selected_bytes = 0, placed_bytes = 0, promoted_bytes = 0, demoted_bytes = 0
    integer(c_int64_t) :: stayed_bytes(0:isotherm_reasons - 1) = 0
  end type

  type, bind(c), public :: isotherm_statistics
    integer(c_int32_t) :: size = 64
    integer(c_int32_t) :: profiling = 0
    integer(c_int64_t) :: objects = 0, object_bytes = 0, fast_bytes = 0, slow_bytes = 0
    integer(c_int64_t) :: optimizations = 0, promoted_bytes = 0, demoted_bytes = 0
  end type

  public :: isotherm_version, isotherm_profile_start, isotherm_profile_stop, isotherm_optimize, isotherm_read_statistics
  public :: isotherm_status_text, isotherm_reason_text, isotherm_read_object, isotherm_name_of
  public :: isotherm_allocate, isotherm_deallocate, isotherm_register, isotherm_unregister, isotherm_hint

  ! call isotherm_allocate('ranks', array, [n, m]): an array of rank 1 to 3 of reals or integers of 4 or 8 bytes. Without `stat`
  ! the program ends where there is no memory; with it, `stat` is 0 or not.
  interface isotherm_allocate
    module procedure &
        allocate_real32_1, allocate_real32_2, allocate_real32_3, &
        allocate_real64_1, allocate_real64_2, allocate_real64_3, &
        allocate_int32_1, allocate_int32_2, allocate_int32_3, &
        allocate_int64_1, allocate_int64_2, allocate_int64_3
  end interface

  ! call isotherm_deallocate(array): frees what isotherm_allocate allocated.
  interface isotherm_deallocate
    module procedure &
        free_real32_1, free_real32_2, free_real32_3, &
        free_real64_1, free_real64_2, free_real64_3, &
        free_int32_1, free_int32_2, free_int32_3, &
        free_int64_1, free_int64_2, free_int64_3
  end interface

  ! status = isotherm_register('grid', array): names a static array, or one in a mapping; what ALLOCATE gives has the name of its
  ! allocation already. Unregister an array before its memory goes. It has the attribute target or pointer.
  interface isotherm_register
    module procedure register_1, register_2, register_3
  end interface

  interface isotherm_unregister
    module procedure unregister_1, unregister_2, unregister_3
  end interface

  ! status = isotherm_hint(array, isotherm_hot)
  interface isotherm_hint
    module procedure hint_1, hint_2, hint_3
  end interface

  abstract interface
    function allocating(name, bytes) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: name
      integer(c_size_t), value :: bytes
      type(c_ptr) :: allocating
    end function
    function plain() bind(c)
      import :: c_int
      integer(c_int) :: plain
    end function
    function starting(frequency) bind(c)
      import :: c_int, c_int32_t
      integer(c_int32_t), value :: frequency
      integer(c_int) :: starting
    end function
    function reading(number, object) bind(c)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: number
      type(c_ptr), value :: object
      integer(c_int) :: reading
    end function
    function serving(version) bind(c)
      import :: c_int
      integer(c_int), value :: version
      integer(c_int) :: serving
    end function
    function on_address(address) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: address
      integer(c_int) :: on_address
    end function
    function registering(name, address, bytes) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: name, address
      integer(c_size_t), value :: bytes
      integer(c_int) :: registering
    end function
    function hinting(address, bytes, heat) bind(c)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: address
      integer(c_size_t), value :: bytes
      integer(c_int), value :: heat
      integer(c_int) :: hinting
    end function
    function optimizing(options, answer) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: options, answer
      integer(c_int) :: optimizing
    end function
  end interface

  interface
    ! A function of the program or of a library that is loaded; `scope` is RTLD_DEFAULT.
    function dlsym(scope, symbol) bind(c, name='dlsym')
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: scope
      character(kind=c_char), intent(in) :: symbol(*)
      type(c_funptr) :: dlsym
    end function
    function c_malloc(bytes) bind(c, name='malloc')
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: bytes
      type(c_ptr) :: c_malloc
    end function
    subroutine c_free(address) bind(c, name='free')
      import :: c_ptr
      type(c_ptr), value :: address
    end subroutine
  end interface

contains

  ! The runtime's function of this name; not associated where none is loaded that serves this module.
  function of_runtime(name) result(found)
    character(*), intent(in) :: name
    type(c_funptr) :: found
    found = c_null_funptr
    if (is_served()) found = dlsym(c_null_ptr, 'isotherm_'//name//c_null_char)
  end function

  ! Whether the runtime, if one is loaded, serves this version. A runtime before version 102 cannot be asked.
  logical function is_served()
    procedure(serving), pointer :: serves_header
    procedure(plain), pointer :: version
    type(c_funptr) :: found
    is_served = .false.
    found = dlsym(c_null_ptr, 'isotherm_serves_header'//c_null_char)
    if (c_associated(found)) then
      call c_f_procpointer(found, serves_header)
      is_served = serves_header(isotherm_header_version) /= 0
      return
    end if
    found = dlsym(c_null_ptr, 'isotherm_version'//c_null_char)
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, version)
    is_served = hundred_of(version()) == hundred_of(isotherm_header_version)
  end function

  pure integer(c_int) function hundred_of(version)
    integer(c_int), intent(in) :: version
    hundred_of = version / 100
  end function

  ! Version of the runtime's interface; 0 where none is loaded that serves this module.
  integer(c_int) function isotherm_version()
    isotherm_version = call_plain('version', 0_c_int)
  end function

  ! With `frequency`, in samples a second of each thread's processor time: as isotherm_profile_start_at of isotherm.h.
  integer(c_int) function isotherm_profile_start(frequency)
    integer(c_int32_t), intent(in), optional :: frequency
    procedure(starting), pointer :: start_at
    type(c_funptr) :: found
    found = c_null_funptr
    if (present(frequency)) found = of_runtime('profile_start_at')
    if (c_associated(found)) then
      call c_f_procpointer(found, start_at)
      isotherm_profile_start = start_at(frequency)
    else
      isotherm_profile_start = call_plain('profile_start', isotherm_absent)
    end if
  end function

  integer(c_int) function isotherm_profile_stop()
    isotherm_profile_stop = call_plain('profile_stop', isotherm_absent)
  end function

  integer(c_int) function call_plain(name, absent)
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: absent
    procedure(plain), pointer :: function_of_runtime
    type(c_funptr) :: found
    call_plain = absent
    found = of_runtime(name)
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, function_of_runtime)
    call_plain = function_of_runtime()
  end function

  ! Chooses from the last profile what is to be in fast memory, and moves it.
  integer(c_int) function isotherm_optimize(options, answer)
    type(isotherm_options), intent(in), target, optional :: options
    type(isotherm_result), intent(out), target, optional :: answer
    procedure(optimizing), pointer :: function_of_runtime
    type(c_funptr) :: found
    type(c_ptr) :: given, filled
    isotherm_optimize = isotherm_absent
    found = of_runtime('optimize')
    if (.not. c_associated(found)) return
    given = c_null_ptr
    if (present(options)) given = c_loc(options)
    filled = c_null_ptr
    if (present(answer)) filled = c_loc(answer)
    call c_f_procpointer(found, function_of_runtime)
    isotherm_optimize = function_of_runtime(given, filled)
  end function

  ! What the last optimization did to the data object with this number, from 0 on by address; isotherm_unknown past the last.
  integer(c_int) function isotherm_read_object(number, object)
    integer(c_int64_t), intent(in) :: number
    type(isotherm_object), intent(out), target :: object
    procedure(reading), pointer :: function_of_runtime
    type(c_funptr) :: found
    isotherm_read_object = isotherm_absent
    found = of_runtime('read_object')
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, function_of_runtime)
    isotherm_read_object = function_of_runtime(number, c_loc(object))
  end function

  ! The program's name for a data object.
  pure function isotherm_name_of(object) result(name)
    type(isotherm_object), intent(in) :: object
    character(:), allocatable :: name
    integer :: i
    name = ''
    do i = 1, size(object%name)
      if (object%name(i) == c_null_char) exit
      name = name//object%name(i)
    end do
  end function

  integer(c_int) function isotherm_read_statistics(statistics)
    type(isotherm_statistics), intent(out), target :: statistics
    isotherm_read_statistics = call_on_address('read_statistics', c_loc(statistics))
  end function

  integer(c_int) function call_on_address(name, address)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    procedure(on_address), pointer :: function_of_runtime
    type(c_funptr) :: found
    call_on_address = isotherm_absent
    found = of_runtime(name)
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, function_of_runtime)
    call_on_address = function_of_runtime(address)
  end function

  ! The meaning of a status, in the words of isotherm.h.
  pure function isotherm_status_text(status) result(text)
    integer(c_int), intent(in) :: status
    character(:), allocatable :: text
    select case (status)
    case (isotherm_ok); text = 'done'
    case (isotherm_absent); text = "Isotherm's runtime is not loaded, or is off"
    case (isotherm_no_observer); text = 'no process observes this one'
    case (isotherm_no_samples); text = 'nothing was profiled, so nothing was moved'
    case (isotherm_busy); text = 'another thread waits for an answer'
    case (isotherm_invalid); text = 'an argument is out of range'
    case (isotherm_overlap); text = 'a part of the memory has a name already'
    case (isotherm_unknown); text = 'no registered object begins there'
    case (isotherm_not_movable); text = 'this memory stays where it is'
    case (isotherm_no_room); text = 'a table of the runtime is full'
    case (isotherm_failed); text = 'the kernel refused'
    case default; text = 'an unknown status'
    end select
  end function

  ! The meaning of a reason, in the words of isotherm.h.
  pure function isotherm_reason_text(reason) result(text)
    integer, intent(in) :: reason
    character(:), allocatable :: text
    select case (reason)
    case (isotherm_stayed_capacity); text = 'hotter data takes the fast memory that may be used'
    case (isotherm_stayed_not_hot); text = 'neither samples nor hints prove it hot'
    case (isotherm_stayed_not_touched); text = 'it has no pages'
    case (isotherm_stayed_not_movable); text = 'the run does not place this memory'
    case (isotherm_stayed_no_room); text = 'the memory that it was to enter was full'
    case (isotherm_stayed_in_use); text = 'its pages were in use'
    case (isotherm_stayed_shared); text = 'it is shared with another process since a fork'
    case (isotherm_stayed_refused); text = 'the kernel refused to move it'
    case default; text = 'an unknown reason'
    end select
  end function

  ! Memory for an array of this shape; not associated where there is none. A negative extent counts as 0.
  function block(name, shape_of_array, element_bytes)
    character(*), intent(in) :: name
    integer, intent(in) :: shape_of_array(:)
    integer(c_size_t), intent(in) :: element_bytes
    type(c_ptr) :: block
    procedure(allocating), pointer :: function_of_runtime
    character(kind=c_char), target :: c_name(len_trim(name) + 1)
    type(c_funptr) :: found
    integer(c_size_t) :: bytes
    block = c_null_ptr
    if (product(real(max(0, shape_of_array), c_double)) * element_bytes > real(huge(bytes), c_double)) return
    bytes = max(1_c_size_t, element_bytes * product(int(max(0, shape_of_array), c_size_t)))
    found = of_runtime('alloc')
    if (c_associated(found)) then
      c_name = letters_of(name)
      call c_f_procpointer(found, function_of_runtime)
      block = function_of_runtime(c_loc(c_name), bytes)
    else
      block = c_malloc(bytes)
    end if
  end function

  ! A name as C reads it, without the spaces at its end.
  function letters_of(name) result(letters)
    character(*), intent(in) :: name
    character(kind=c_char) :: letters(len_trim(name) + 1)
    integer :: i
    do i = 1, len_trim(name)
      letters(i) = name(i:i)
    end do
    letters(len_trim(name) + 1) = c_null_char
  end function

  ! Reports the end of an allocation as the statement ALLOCATE does.
  subroutine end_allocation(memory, name, stat)
    type(c_ptr), intent(in) :: memory
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    if (present(stat)) then
      stat = merge(0, 1, c_associated(memory))
    else if (.not. c_associated(memory)) then
      error stop 'isotherm_allocate: no memory for '//name
    end if
  end subroutine

  function address_of(array) result(address)
    type(*), intent(in), target :: array(*)
    type(c_ptr) :: address
    address = c_loc(array)
  end function

  integer(c_int) function register_block(name, address, bytes)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: bytes
    procedure(registering), pointer :: function_of_runtime
    character(kind=c_char), target :: c_name(len_trim(name) + 1)
    type(c_funptr) :: found
    register_block = isotherm_absent
    found = of_runtime('register')
    if (.not. c_associated(found)) return
    c_name = letters_of(name)
    call c_f_procpointer(found, function_of_runtime)
    register_block = function_of_runtime(c_loc(c_name), address, bytes)
  end function

  integer(c_int) function hint_block(address, bytes, heat)
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: bytes
    integer(c_int), intent(in) :: heat
    procedure(hinting), pointer :: function_of_runtime
    type(c_funptr) :: found
    hint_block = isotherm_absent
    found = of_runtime('hint')
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, function_of_runtime)
    hint_block = function_of_runtime(address, bytes, heat)
  end function

  integer(c_int) function register_1(name, array)
    character(*), intent(in) :: name
    class(*), intent(in), target, contiguous :: array(:)
    register_1 = register_block(name, address_of(array), size(array, kind=c_size_t) * (storage_size(array, c_size_t) / 8))
  end function

  integer(c_int) function unregister_1(array)
    class(*), intent(in), target, contiguous :: array(:)
    unregister_1 = call_on_address('unregister', address_of(array))
  end function

  integer(c_int) function hint_1(array, heat)
    class(*), intent(in), target, contiguous :: array(:)
    integer(c_int), intent(in) :: heat
    hint_1 = hint_block(address_of(array), size(array, kind=c_size_t) * (storage_size(array, c_size_t) / 8), heat)
  end function

  integer(c_int) function register_2(name, array)
    character(*), intent(in) :: name
    class(*), intent(in), target, contiguous :: array(:, :)
    register_2 = register_block(name, address_of(array), size(array, kind=c_size_t) * (storage_size(array, c_size_t) / 8))
  end function

  integer(c_int) function unregister_2(array)
    class(*), intent(in), target, contiguous :: array(:, :)
    unregister_2 = call_on_address('unregister', address_of(array))
  end function

  integer(c_int) function hint_2(array, heat)
    class(*), intent(in), target, contiguous :: array(:, :)
    integer(c_int), intent(in) :: heat
    hint_2 = hint_block(address_of(array), size(array, kind=c_size_t) * (storage_size(array, c_size_t) / 8), heat)
  end function

  integer(c_int) function register_3(name, array)
    character(*), intent(in) :: name
    class(*), intent(in), target, contiguous :: array(:, :, :)
    register_3 = register_block(name, address_of(array), size(array, kind=c_size_t) * (storage_size(array, c_size_t) / 8))
  end function

  integer(c_int) function unregister_3(array)
    class(*), intent(in), target, contiguous :: array(:, :, :)
    unregister_3 = call_on_address('unregister', address_of(array))
  end function

  integer(c_int) function hint_3(array, heat)
    class(*), intent(in), target, contiguous :: array(:, :, :)
    integer(c_int), intent(in) :: heat
    hint_3 = hint_block(address_of(array), size(array, kind=c_size_t) * (storage_size(array, c_size_t) / 8), heat)
  end function

  subroutine allocate_real32_1(name, array, extents, stat)
    character(*), intent(in) :: name
    real(c_float), pointer, intent(out) :: array(:)
    integer, intent(in) :: extents(1)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 4_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_real32_1(array)
    real(c_float), pointer, intent(inout) :: array(:)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_real32_2(name, array, extents, stat)
    character(*), intent(in) :: name
    real(c_float), pointer, intent(out) :: array(:, :)
    integer, intent(in) :: extents(2)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 4_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_real32_2(array)
    real(c_float), pointer, intent(inout) :: array(:, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_real32_3(name, array, extents, stat)
    character(*), intent(in) :: name
    real(c_float), pointer, intent(out) :: array(:, :, :)
    integer, intent(in) :: extents(3)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 4_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_real32_3(array)
    real(c_float), pointer, intent(inout) :: array(:, :, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_real64_1(name, array, extents, stat)
    character(*), intent(in) :: name
    real(c_double), pointer, intent(out) :: array(:)
    integer, intent(in) :: extents(1)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 8_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_real64_1(array)
    real(c_double), pointer, intent(inout) :: array(:)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_real64_2(name, array, extents, stat)
    character(*), intent(in) :: name
    real(c_double), pointer, intent(out) :: array(:, :)
    integer, intent(in) :: extents(2)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 8_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_real64_2(array)
    real(c_double), pointer, intent(inout) :: array(:, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_real64_3(name, array, extents, stat)
    character(*), intent(in) :: name
    real(c_double), pointer, intent(out) :: array(:, :, :)
    integer, intent(in) :: extents(3)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 8_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_real64_3(array)
    real(c_double), pointer, intent(inout) :: array(:, :, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_int32_1(name, array, extents, stat)
    character(*), intent(in) :: name
    integer(c_int32_t), pointer, intent(out) :: array(:)
    integer, intent(in) :: extents(1)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 4_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_int32_1(array)
    integer(c_int32_t), pointer, intent(inout) :: array(:)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_int32_2(name, array, extents, stat)
    character(*), intent(in) :: name
    integer(c_int32_t), pointer, intent(out) :: array(:, :)
    integer, intent(in) :: extents(2)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 4_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_int32_2(array)
    integer(c_int32_t), pointer, intent(inout) :: array(:, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_int32_3(name, array, extents, stat)
    character(*), intent(in) :: name
    integer(c_int32_t), pointer, intent(out) :: array(:, :, :)
    integer, intent(in) :: extents(3)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 4_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_int32_3(array)
    integer(c_int32_t), pointer, intent(inout) :: array(:, :, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_int64_1(name, array, extents, stat)
    character(*), intent(in) :: name
    integer(c_int64_t), pointer, intent(out) :: array(:)
    integer, intent(in) :: extents(1)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 8_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_int64_1(array)
    integer(c_int64_t), pointer, intent(inout) :: array(:)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_int64_2(name, array, extents, stat)
    character(*), intent(in) :: name
    integer(c_int64_t), pointer, intent(out) :: array(:, :)
    integer, intent(in) :: extents(2)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 8_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_int64_2(array)
    integer(c_int64_t), pointer, intent(inout) :: array(:, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

  subroutine allocate_int64_3(name, array, extents, stat)
    character(*), intent(in) :: name
    integer(c_int64_t), pointer, intent(out) :: array(:, :, :)
    integer, intent(in) :: extents(3)
    integer, intent(out), optional :: stat
    type(c_ptr) :: memory
    memory = block(name, extents, 8_c_size_t)
    nullify(array)
    if (c_associated(memory)) call c_f_pointer(memory, array, max(0, extents))
    call end_allocation(memory, name, stat)
  end subroutine

  subroutine free_int64_3(array)
    integer(c_int64_t), pointer, intent(inout) :: array(:, :, :)
    if (associated(array)) call c_free(address_of(array))
    nullify(array)
  end subroutine

end module
