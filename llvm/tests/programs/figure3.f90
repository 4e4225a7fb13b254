! As figure3.c: one ALLOCATE that three calls lead to. Prints the 2 MiB in which the array of each lies.
module makers
    use, intrinsic :: iso_c_binding
    implicit none
contains
    subroutine make(array)
        real, allocatable, intent(out) :: array(:)
        allocate(array(751))
        array = 1.0
    end subroutine
    subroutine a(array)
        real, allocatable, intent(out) :: array(:)
        call make(array)
    end subroutine
    subroutine b(array)
        real, allocatable, intent(out) :: array(:)
        call make(array)
    end subroutine
    subroutine c(array)
        real, allocatable, intent(out) :: array(:)
        call make(array)
    end subroutine
    subroutine print_place(name, array)
        character, intent(in) :: name
        real, intent(in), target :: array(:)
        print '(a,1x,z0)', name, shiftr(transfer(c_loc(array(1)), 0_c_intptr_t), 21)
    end subroutine
end module

program figure3
    use makers
    implicit none
    real, allocatable :: first(:), second(:), third(:)
    call a(first)
    call b(second)
    call c(third)
    call print_place('a', first)
    call print_place('b', second)
    call print_place('c', third)
end program
