! Tracers of an ocean basin: each is carried along by a current and spreads, on one grid.
!
!   ocean [SIDE [STEPS]]          default 512 200
!
! Each tracer has eight arrays. Two are swept in every step, the other six are made and filled first and read
! every fiftieth step: a placement must distinguish the two kinds, among 224 allocated objects. Standard output holds
! the tracers' sums, which are the same in every run; standard error the time of the steps.
module tracers
  implicit none
  integer, parameter :: real64 = selected_real_kind(15)

  type :: tracer
    character(len=16) :: name
    ! Swept in every step.
    real(real64), allocatable :: now(:, :), next(:, :)
    ! Read from time to time.
    real(real64), allocatable :: initial(:, :), source(:, :), mean(:, :)
    real(real64), allocatable :: lowest(:, :), highest(:, :), budget(:, :)
  end type

contains

  ! All rarely used arrays, touched first, as in a program that reads its input first.
  subroutine fill(each, name, number)
    type(tracer), intent(inout) :: each
    character(len=*), intent(in) :: name
    integer, intent(in) :: number
    integer :: x, y
    each%name = name
    do y = 1, size(each%initial, 2)
      do x = 1, size(each%initial, 1)
        each%initial(x, y) = mod(x * number + y * 7, 101) / 101.0_real64
      end do
    end do
    each%source(:, :) = 0.001_real64 * number
    each%mean(:, :) = 0
    each%lowest(:, :) = each%initial
    each%highest(:, :) = each%initial
    each%budget(:, :) = 0
    each%now(:, :) = each%initial
    each%next(:, :) = each%initial
  end subroutine

  ! Upwind advection by a constant current, and diffusion.
  subroutine step(each)
    type(tracer), intent(inout) :: each
    real(real64), allocatable :: swept(:, :)
    integer :: x, y
    do y = 2, size(each%now, 2) - 1
      do x = 2, size(each%now, 1) - 1
        each%next(x, y) = each%now(x, y) - 0.2_real64 * (each%now(x, y) - each%now(x - 1, y)) &
            - 0.1_real64 * (each%now(x, y) - each%now(x, y - 1)) &
            + 0.05_real64 * (each%now(x - 1, y) + each%now(x + 1, y) + each%now(x, y - 1) &
            + each%now(x, y + 1) - 4 * each%now(x, y))
      end do
    end do
    call move_alloc(each%now, swept)
    call move_alloc(each%next, each%now)
    call move_alloc(swept, each%next)
  end subroutine

  subroutine look(each)
    type(tracer), intent(inout) :: each
    each%now(:, :) = each%now + each%source
    each%mean(:, :) = each%mean + each%now
    each%lowest(:, :) = min(each%lowest, each%now)
    each%highest(:, :) = max(each%highest, each%now)
    each%budget(:, :) = each%now - each%initial
  end subroutine
end module

program ocean
  use tracers
  implicit none
  type(tracer) :: temperature
  type(tracer) :: salinity
  type(tracer) :: oxygen
  type(tracer) :: nitrate
  type(tracer) :: ammonium
  type(tracer) :: phosphate
  type(tracer) :: silicate
  type(tracer) :: iron
  type(tracer) :: carbon
  type(tracer) :: alkalinity
  type(tracer) :: calcite
  type(tracer) :: phytoplankton
  type(tracer) :: diatoms
  type(tracer) :: zooplankton
  type(tracer) :: detritus
  type(tracer) :: bacteria
  type(tracer) :: methane
  type(tracer) :: sulfide
  type(tracer) :: argon
  type(tracer) :: neon
  type(tracer) :: tritium
  type(tracer) :: helium
  type(tracer) :: radon
  type(tracer) :: cesium
  type(tracer) :: dye_north
  type(tracer) :: dye_south
  type(tracer) :: age
  type(tracer) :: turbidity
  integer :: side, steps, number
  integer(8) :: began, ended, rate
  side = argument(1, 512)
  steps = argument(2, 200)
  allocate (temperature%initial(side, side))
  allocate (temperature%source(side, side))
  allocate (temperature%mean(side, side))
  allocate (temperature%lowest(side, side))
  allocate (temperature%highest(side, side))
  allocate (temperature%budget(side, side))
  allocate (salinity%initial(side, side))
  allocate (salinity%source(side, side))
  allocate (salinity%mean(side, side))
  allocate (salinity%lowest(side, side))
  allocate (salinity%highest(side, side))
  allocate (salinity%budget(side, side))
  allocate (oxygen%initial(side, side))
  allocate (oxygen%source(side, side))
  allocate (oxygen%mean(side, side))
  allocate (oxygen%lowest(side, side))
  allocate (oxygen%highest(side, side))
  allocate (oxygen%budget(side, side))
  allocate (nitrate%initial(side, side))
  allocate (nitrate%source(side, side))
  allocate (nitrate%mean(side, side))
  allocate (nitrate%lowest(side, side))
  allocate (nitrate%highest(side, side))
  allocate (nitrate%budget(side, side))
  allocate (ammonium%initial(side, side))
  allocate (ammonium%source(side, side))
  allocate (ammonium%mean(side, side))
  allocate (ammonium%lowest(side, side))
  allocate (ammonium%highest(side, side))
  allocate (ammonium%budget(side, side))
  allocate (phosphate%initial(side, side))
  allocate (phosphate%source(side, side))
  allocate (phosphate%mean(side, side))
  allocate (phosphate%lowest(side, side))
  allocate (phosphate%highest(side, side))
  allocate (phosphate%budget(side, side))
  allocate (silicate%initial(side, side))
  allocate (silicate%source(side, side))
  allocate (silicate%mean(side, side))
  allocate (silicate%lowest(side, side))
  allocate (silicate%highest(side, side))
  allocate (silicate%budget(side, side))
  allocate (iron%initial(side, side))
  allocate (iron%source(side, side))
  allocate (iron%mean(side, side))
  allocate (iron%lowest(side, side))
  allocate (iron%highest(side, side))
  allocate (iron%budget(side, side))
  allocate (carbon%initial(side, side))
  allocate (carbon%source(side, side))
  allocate (carbon%mean(side, side))
  allocate (carbon%lowest(side, side))
  allocate (carbon%highest(side, side))
  allocate (carbon%budget(side, side))
  allocate (alkalinity%initial(side, side))
  allocate (alkalinity%source(side, side))
  allocate (alkalinity%mean(side, side))
  allocate (alkalinity%lowest(side, side))
  allocate (alkalinity%highest(side, side))
  allocate (alkalinity%budget(side, side))
  allocate (calcite%initial(side, side))
  allocate (calcite%source(side, side))
  allocate (calcite%mean(side, side))
  allocate (calcite%lowest(side, side))
  allocate (calcite%highest(side, side))
  allocate (calcite%budget(side, side))
  allocate (phytoplankton%initial(side, side))
  allocate (phytoplankton%source(side, side))
  allocate (phytoplankton%mean(side, side))
  allocate (phytoplankton%lowest(side, side))
  allocate (phytoplankton%highest(side, side))
  allocate (phytoplankton%budget(side, side))
  allocate (diatoms%initial(side, side))
  allocate (diatoms%source(side, side))
  allocate (diatoms%mean(side, side))
  allocate (diatoms%lowest(side, side))
  allocate (diatoms%highest(side, side))
  allocate (diatoms%budget(side, side))
  allocate (zooplankton%initial(side, side))
  allocate (zooplankton%source(side, side))
  allocate (zooplankton%mean(side, side))
  allocate (zooplankton%lowest(side, side))
  allocate (zooplankton%highest(side, side))
  allocate (zooplankton%budget(side, side))
  allocate (detritus%initial(side, side))
  allocate (detritus%source(side, side))
  allocate (detritus%mean(side, side))
  allocate (detritus%lowest(side, side))
  allocate (detritus%highest(side, side))
  allocate (detritus%budget(side, side))
  allocate (bacteria%initial(side, side))
  allocate (bacteria%source(side, side))
  allocate (bacteria%mean(side, side))
  allocate (bacteria%lowest(side, side))
  allocate (bacteria%highest(side, side))
  allocate (bacteria%budget(side, side))
  allocate (methane%initial(side, side))
  allocate (methane%source(side, side))
  allocate (methane%mean(side, side))
  allocate (methane%lowest(side, side))
  allocate (methane%highest(side, side))
  allocate (methane%budget(side, side))
  allocate (sulfide%initial(side, side))
  allocate (sulfide%source(side, side))
  allocate (sulfide%mean(side, side))
  allocate (sulfide%lowest(side, side))
  allocate (sulfide%highest(side, side))
  allocate (sulfide%budget(side, side))
  allocate (argon%initial(side, side))
  allocate (argon%source(side, side))
  allocate (argon%mean(side, side))
  allocate (argon%lowest(side, side))
  allocate (argon%highest(side, side))
  allocate (argon%budget(side, side))
  allocate (neon%initial(side, side))
  allocate (neon%source(side, side))
  allocate (neon%mean(side, side))
  allocate (neon%lowest(side, side))
  allocate (neon%highest(side, side))
  allocate (neon%budget(side, side))
  allocate (tritium%initial(side, side))
  allocate (tritium%source(side, side))
  allocate (tritium%mean(side, side))
  allocate (tritium%lowest(side, side))
  allocate (tritium%highest(side, side))
  allocate (tritium%budget(side, side))
  allocate (helium%initial(side, side))
  allocate (helium%source(side, side))
  allocate (helium%mean(side, side))
  allocate (helium%lowest(side, side))
  allocate (helium%highest(side, side))
  allocate (helium%budget(side, side))
  allocate (radon%initial(side, side))
  allocate (radon%source(side, side))
  allocate (radon%mean(side, side))
  allocate (radon%lowest(side, side))
  allocate (radon%highest(side, side))
  allocate (radon%budget(side, side))
  allocate (cesium%initial(side, side))
  allocate (cesium%source(side, side))
  allocate (cesium%mean(side, side))
  allocate (cesium%lowest(side, side))
  allocate (cesium%highest(side, side))
  allocate (cesium%budget(side, side))
  allocate (dye_north%initial(side, side))
  allocate (dye_north%source(side, side))
  allocate (dye_north%mean(side, side))
  allocate (dye_north%lowest(side, side))
  allocate (dye_north%highest(side, side))
  allocate (dye_north%budget(side, side))
  allocate (dye_south%initial(side, side))
  allocate (dye_south%source(side, side))
  allocate (dye_south%mean(side, side))
  allocate (dye_south%lowest(side, side))
  allocate (dye_south%highest(side, side))
  allocate (dye_south%budget(side, side))
  allocate (age%initial(side, side))
  allocate (age%source(side, side))
  allocate (age%mean(side, side))
  allocate (age%lowest(side, side))
  allocate (age%highest(side, side))
  allocate (age%budget(side, side))
  allocate (turbidity%initial(side, side))
  allocate (turbidity%source(side, side))
  allocate (turbidity%mean(side, side))
  allocate (turbidity%lowest(side, side))
  allocate (turbidity%highest(side, side))
  allocate (turbidity%budget(side, side))
  allocate (temperature%now(side, side))
  allocate (temperature%next(side, side))
  allocate (salinity%now(side, side))
  allocate (salinity%next(side, side))
  allocate (oxygen%now(side, side))
  allocate (oxygen%next(side, side))
  allocate (nitrate%now(side, side))
  allocate (nitrate%next(side, side))
  allocate (ammonium%now(side, side))
  allocate (ammonium%next(side, side))
  allocate (phosphate%now(side, side))
  allocate (phosphate%next(side, side))
  allocate (silicate%now(side, side))
  allocate (silicate%next(side, side))
  allocate (iron%now(side, side))
  allocate (iron%next(side, side))
  allocate (carbon%now(side, side))
  allocate (carbon%next(side, side))
  allocate (alkalinity%now(side, side))
  allocate (alkalinity%next(side, side))
  allocate (calcite%now(side, side))
  allocate (calcite%next(side, side))
  allocate (phytoplankton%now(side, side))
  allocate (phytoplankton%next(side, side))
  allocate (diatoms%now(side, side))
  allocate (diatoms%next(side, side))
  allocate (zooplankton%now(side, side))
  allocate (zooplankton%next(side, side))
  allocate (detritus%now(side, side))
  allocate (detritus%next(side, side))
  allocate (bacteria%now(side, side))
  allocate (bacteria%next(side, side))
  allocate (methane%now(side, side))
  allocate (methane%next(side, side))
  allocate (sulfide%now(side, side))
  allocate (sulfide%next(side, side))
  allocate (argon%now(side, side))
  allocate (argon%next(side, side))
  allocate (neon%now(side, side))
  allocate (neon%next(side, side))
  allocate (tritium%now(side, side))
  allocate (tritium%next(side, side))
  allocate (helium%now(side, side))
  allocate (helium%next(side, side))
  allocate (radon%now(side, side))
  allocate (radon%next(side, side))
  allocate (cesium%now(side, side))
  allocate (cesium%next(side, side))
  allocate (dye_north%now(side, side))
  allocate (dye_north%next(side, side))
  allocate (dye_south%now(side, side))
  allocate (dye_south%next(side, side))
  allocate (age%now(side, side))
  allocate (age%next(side, side))
  allocate (turbidity%now(side, side))
  allocate (turbidity%next(side, side))
  call fill(temperature, 'temperature', 1)
  call fill(salinity, 'salinity', 2)
  call fill(oxygen, 'oxygen', 3)
  call fill(nitrate, 'nitrate', 4)
  call fill(ammonium, 'ammonium', 5)
  call fill(phosphate, 'phosphate', 6)
  call fill(silicate, 'silicate', 7)
  call fill(iron, 'iron', 8)
  call fill(carbon, 'carbon', 9)
  call fill(alkalinity, 'alkalinity', 10)
  call fill(calcite, 'calcite', 11)
  call fill(phytoplankton, 'phytoplankton', 12)
  call fill(diatoms, 'diatoms', 13)
  call fill(zooplankton, 'zooplankton', 14)
  call fill(detritus, 'detritus', 15)
  call fill(bacteria, 'bacteria', 16)
  call fill(methane, 'methane', 17)
  call fill(sulfide, 'sulfide', 18)
  call fill(argon, 'argon', 19)
  call fill(neon, 'neon', 20)
  call fill(tritium, 'tritium', 21)
  call fill(helium, 'helium', 22)
  call fill(radon, 'radon', 23)
  call fill(cesium, 'cesium', 24)
  call fill(dye_north, 'dye_north', 25)
  call fill(dye_south, 'dye_south', 26)
  call fill(age, 'age', 27)
  call fill(turbidity, 'turbidity', 28)
  call system_clock(began, rate)
  do number = 1, steps
    call steps_of_all()
    if (mod(number, 50) == 0) call looks_at_all()
  end do
  call system_clock(ended)
  call tell(temperature)
  call tell(salinity)
  call tell(oxygen)
  call tell(nitrate)
  call tell(ammonium)
  call tell(phosphate)
  call tell(silicate)
  call tell(iron)
  call tell(carbon)
  call tell(alkalinity)
  call tell(calcite)
  call tell(phytoplankton)
  call tell(diatoms)
  call tell(zooplankton)
  call tell(detritus)
  call tell(bacteria)
  call tell(methane)
  call tell(sulfide)
  call tell(argon)
  call tell(neon)
  call tell(tritium)
  call tell(helium)
  call tell(radon)
  call tell(cesium)
  call tell(dye_north)
  call tell(dye_south)
  call tell(age)
  call tell(turbidity)
  write (0, '(a, f0.3)') 'kernel_seconds ', real(ended - began, real64) / real(rate, real64)

contains

  ! A number of the command line.
  integer function argument(place, default)
    integer, intent(in) :: place, default
    character(len=16) :: word
    integer :: failed
    argument = default
    if (command_argument_count() < place) return
    call get_command_argument(place, word)
    read (word, *, iostat=failed) argument
    if (failed /= 0 .or. argument < 3) then
      write (0, '(a)') 'ocean: the side of the grid and the steps are numbers of at least 3'
      stop 2
    end if
  end function

  subroutine tell(each)
    type(tracer), intent(in) :: each
    write (*, '(a, 4(1x, es22.14))') each%name, sum(each%now), sum(each%mean), sum(each%highest - each%lowest), sum(each%budget)
  end subroutine

  subroutine steps_of_all()
    call step(temperature)
    call step(salinity)
    call step(oxygen)
    call step(nitrate)
    call step(ammonium)
    call step(phosphate)
    call step(silicate)
    call step(iron)
    call step(carbon)
    call step(alkalinity)
    call step(calcite)
    call step(phytoplankton)
    call step(diatoms)
    call step(zooplankton)
    call step(detritus)
    call step(bacteria)
    call step(methane)
    call step(sulfide)
    call step(argon)
    call step(neon)
    call step(tritium)
    call step(helium)
    call step(radon)
    call step(cesium)
    call step(dye_north)
    call step(dye_south)
    call step(age)
    call step(turbidity)
  end subroutine

  subroutine looks_at_all()
    call look(temperature)
    call look(salinity)
    call look(oxygen)
    call look(nitrate)
    call look(ammonium)
    call look(phosphate)
    call look(silicate)
    call look(iron)
    call look(carbon)
    call look(alkalinity)
    call look(calcite)
    call look(phytoplankton)
    call look(diatoms)
    call look(zooplankton)
    call look(detritus)
    call look(bacteria)
    call look(methane)
    call look(sulfide)
    call look(argon)
    call look(neon)
    call look(tritium)
    call look(helium)
    call look(radon)
    call look(cesium)
    call look(dye_north)
    call look(dye_south)
    call look(age)
    call look(turbidity)
  end subroutine
end program
