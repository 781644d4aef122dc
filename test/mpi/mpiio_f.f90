! SPDX-License-Identifier: BSD-3-Clause
! MPI-IO from Fortran: the calls that programs in this language make most, on names relative to the working directory.
! Rank 0 prints what was counted and summed over all; run compares that, and the files, with a plain directory.
!
!     mpiio_f DIR
program mpiio_f
  use mpi
  implicit none
  integer, parameter :: n = 300
  integer :: rank, nr_ranks, ierr, fh, view, request, i
  integer :: status(MPI_STATUS_SIZE)
  integer :: sizes(2), part(2), start(2)
  integer(kind=MPI_OFFSET_KIND) :: off, bytes
  double precision :: mine(n), back(n)
  integer :: cells(6, 5), again(6, 5)
  character(len=4096) :: dir
  character(len=16) :: line

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nr_ranks, ierr)
  call get_command_argument(1, dir)
  call chdir(trim(dir))
  do i = 1, n
    mine(i) = rank * 1000 + i + 0.25d0
  end do

  ! independent and collective, explicit offsets
  call open_file('f.offsets', MPI_MODE_CREATE + MPI_MODE_RDWR)
  off = int(rank, MPI_OFFSET_KIND) * n * 8
  call MPI_File_write_at(fh, off, mine, n / 2, MPI_DOUBLE_PRECISION, status, ierr)
  call report('write_at', MPI_DOUBLE_PRECISION)
  call MPI_File_write_at_all(fh, off + n / 2 * 8, mine(n / 2 + 1:), n - n / 2, MPI_DOUBLE_PRECISION, status, ierr)
  call report('write_at_all', MPI_DOUBLE_PRECISION)
  call all_synced()
  off = int(mod(rank + 1, nr_ranks), MPI_OFFSET_KIND) * n * 8
  back = 0
  call MPI_File_read_at_all(fh, off, back, n, MPI_DOUBLE_PRECISION, status, ierr)
  call report('read_at_all', MPI_DOUBLE_PRECISION)
  call report_sum('the neighbour''s', sum(back))
  call MPI_File_get_size(fh, bytes, ierr)
  if (rank == 0) print '(a,i0)', 'size ', bytes
  call all_synced()
  bytes = 1001
  call MPI_File_set_size(fh, bytes, ierr)
  call MPI_File_get_size(fh, bytes, ierr)
  if (rank == 0) print '(a,i0)', 'cut to ', bytes
  call MPI_File_close(fh, ierr)

  ! a matrix, dealt out by columns
  call open_file('f.matrix', MPI_MODE_CREATE + MPI_MODE_RDWR)
  sizes = (/ 6, 5 * nr_ranks /)
  part = (/ 6, 5 /)
  start = (/ 0, 5 * rank /)
  call MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_FORTRAN, MPI_INTEGER, view, ierr)
  call MPI_Type_commit(view, ierr)
  off = 12
  call MPI_File_set_view(fh, off, MPI_INTEGER, view, 'native', MPI_INFO_NULL, ierr)
  cells = reshape((/ (rank * 100 + i, i = 1, 30) /), (/ 6, 5 /))
  call MPI_File_write_all(fh, cells, 30, MPI_INTEGER, status, ierr)
  call report('write_all', MPI_INTEGER)
  call all_synced()
  off = 0
  again = 0
  call MPI_File_read_at(fh, off, again, 30, MPI_INTEGER, status, ierr)
  call report('read_at', MPI_INTEGER)
  call report_sum('wrong cells', dble(count(again /= cells)))
  call MPI_Type_free(view, ierr)
  call MPI_File_close(fh, ierr)

  ! begun, and ended later
  call open_file('f.begun', MPI_MODE_CREATE + MPI_MODE_RDWR)
  off = int(rank, MPI_OFFSET_KIND) * n * 8
  call MPI_File_iwrite_at(fh, off, mine, n, MPI_DOUBLE_PRECISION, request, ierr)
  call MPI_Wait(request, status, ierr)
  call report('iwrite_at', MPI_DOUBLE_PRECISION)
  off = off + int(nr_ranks, MPI_OFFSET_KIND) * n * 8
  call MPI_File_write_at_all_begin(fh, off, mine, n, MPI_DOUBLE_PRECISION, ierr)
  call MPI_File_write_at_all_end(fh, mine, status, ierr)
  call report('write_at_all_end', MPI_DOUBLE_PRECISION)
  call MPI_File_iread_at(fh, off, back, n, MPI_DOUBLE_PRECISION, request, ierr)
  call MPI_Wait(request, status, ierr)
  call report('iread_at', MPI_DOUBLE_PRECISION)
  call report_sum('wrong', dble(count(back /= mine)))
  call MPI_File_close(fh, ierr)

  ! lines in the order of the ranks, then by whoever comes first
  call open_file('f.lines', MPI_MODE_CREATE + MPI_MODE_RDWR)
  write (line, '(a,i4,a)') 'rank', rank, ' was in' // new_line('a')
  call MPI_File_write_ordered(fh, line, 16, MPI_CHARACTER, status, ierr)
  call report('write_ordered', MPI_CHARACTER)
  line = repeat('.', 15) // new_line('a')
  call MPI_File_write_shared(fh, line, 16, MPI_CHARACTER, status, ierr)
  call report('write_shared', MPI_CHARACTER)
  call all_synced()
  call MPI_File_get_position_shared(fh, off, ierr)
  if (rank == 0) print '(a,i0)', 'shared pointer at ', off
  call MPI_File_close(fh, ierr)

  ! errors
  call MPI_File_open(MPI_COMM_WORLD, 'f.missing', MPI_MODE_RDONLY, MPI_INFO_NULL, fh, ierr)
  call report_class('open of a missing file')
  if (rank == 0) then
    call MPI_File_delete('f.missing', MPI_INFO_NULL, ierr)
    call report_class('delete of a missing file')
    call MPI_File_delete('f.begun', MPI_INFO_NULL, ierr)
    call report_class('delete')
  end if
  call MPI_Finalize(ierr)

contains

  subroutine open_file(name, amode)
    character(len=*), intent(in) :: name
    integer, intent(in) :: amode

    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, fh, ierr)
    if (ierr /= MPI_SUCCESS) then
      print *, 'cannot open ', name
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end if
  end subroutine

  subroutine all_synced()
    call MPI_File_sync(fh, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_sync(fh, ierr)
  end subroutine

  subroutine report(what, datatype)
    character(len=*), intent(in) :: what
    integer, intent(in) :: datatype
    integer :: items, all_items, failed, all_failed, e

    failed = merge(0, 1, ierr == MPI_SUCCESS)
    call MPI_Get_count(status, datatype, items, e)
    call MPI_Reduce(items, all_items, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, e)
    call MPI_Reduce(failed, all_failed, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, e)
    if (rank == 0) print '(a,a,i0,a,i0,a)', what, ': ', all_items, ' items, ', all_failed, ' failed'
  end subroutine

  subroutine report_sum(what, x)
    character(len=*), intent(in) :: what
    double precision, intent(in) :: x
    double precision :: total
    integer :: e

    call MPI_Reduce(x, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, e)
    if (rank == 0) print '(a,a,f0.2)', what, ': ', total
  end subroutine

  subroutine report_class(what)
    character(len=*), intent(in) :: what
    integer :: class, e

    call MPI_Error_class(ierr, class, e)
    if (rank == 0) print '(a,a,l1,l1)', what, ': ', class == MPI_SUCCESS, class == MPI_ERR_NO_SUCH_FILE
  end subroutine
end program
