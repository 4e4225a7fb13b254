! ALLOCATE is a call of malloc where it is simple and nothing can go wrong, else one of flang's library.
! REQUIRES: flang
! RUN: %fc -O0 %s | FileCheck %s
subroutine make(a, b, c, p, q, n)
  real(8), allocatable :: a(:), b(:), c(:)
  real(8), pointer :: p(:), q(:)
  integer :: n, status
  ! CHECK-LABEL: define void @make_(
  ! CHECK: call ptr %{{.*}}(i64 {{.*}}, ptr @isotherm_site.
  allocate (a(n))
  ! CHECK: call i32 @isotherm_fortran_allocate(ptr {{.*}}, i1 true, ptr {{.*}}, ptr {{.*}}, i32 {{[0-9]+}}, ptr @isotherm_site.
  allocate (b(n), stat=status)
  ! CHECK: call i32 @isotherm_fortran_allocate_from(ptr {{.*}}, ptr {{.*}}, i1 false, ptr {{.*}}, ptr {{.*}}, i32 {{[0-9]+}}, ptr @isotherm_site.
  allocate (c, source=a)
  ! CHECK: call i32 @isotherm_fortran_allocate_pointer(ptr {{.*}}, i1 false, ptr {{.*}}, ptr {{.*}}, i32 {{[0-9]+}}, ptr @isotherm_site.
  allocate (p(n))
  ! CHECK: call i32 @isotherm_fortran_allocate_pointer_from(ptr {{.*}}, ptr {{.*}}, i1 false, ptr {{.*}}, ptr {{.*}}, i32 {{[0-9]+}}, ptr @isotherm_site.
  allocate (q, source=p)
end subroutine
