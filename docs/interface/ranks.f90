! Ranks of a graph whose low vertices have most links: arrays by name, one iteration profiled, then the hot parts moved.
program ranks_of_a_graph
  use, intrinsic :: iso_c_binding
  use isotherm
  implicit none
  integer, parameter :: links_each = 8, iterations = 10
  integer(c_int64_t), parameter :: prime = 1000000007
  integer(c_int32_t), pointer :: links(:, :)
  integer(c_int64_t), pointer :: ranks(:), next(:), swap(:)
  type(isotherm_result) :: moved
  character(16) :: argument = '20'
  integer(c_int64_t) :: n, i, x
  integer :: step, scale, status

  if (command_argument_count() > 0) call get_command_argument(1, argument)
  read (argument, *) scale
  n = 2_c_int64_t**scale
  call isotherm_allocate('links', links, [links_each, int(n)])
  call isotherm_allocate('ranks', ranks, [int(n)])
  call isotherm_allocate('next', next, [int(n)])
  do i = 0, n * links_each - 1
    x = mod(i * 2654435761_c_int64_t, 4294967296_c_int64_t) * n / 4294967296_c_int64_t
    links(1 + mod(i, int(links_each, c_int64_t)), 1 + i / links_each) = int(1 + x * x / n, c_int32_t)
  end do
  ranks = 1
  do step = 0, iterations - 1
    if (step == 1) status = isotherm_profile_start()
    do i = 1, n
      next(i) = mod(i - 1 + sum(ranks(links(:, i))), prime)
    end do
    if (step == 1) then
      status = isotherm_profile_stop()
      status = isotherm_optimize(answer=moved)
      print '(a, i0, 2a)', 'moved ', moved%promoted_bytes, ' bytes to fast memory: ', isotherm_status_text(status)
    end if
    swap => ranks; ranks => next; next => swap
  end do
  print '(a, i0)', 'checksum ', mod(sum(ranks), prime)
end program
