! SPDX-License-Identifier: BSD-3-Clause
! Fortran's kinds of files in the directory $P: sequential, direct, stream, append, scratch, namelists, inquire.
program records
  implicit none
  character(len=4096) :: p, name
  character(len=100) :: line
  character(len=5000) :: message
  integer :: u, s, i, n, size_of, numbers(10)
  real(8) :: x(1000), y(1000)
  logical :: there, open_
  namelist /settings/ n, line

  call get_environment_variable('P', p)

  open(newunit=u, file=trim(p)//'/text', status='new', action='write')
  do i = 1, 200
    write(u, '(a,i5,f10.3)') 'line', i, i / 7d0
  end do
  close(u)
  open(newunit=u, file=trim(p)//'/text', status='old', position='append')
  write(u, *) 'appended'
  rewind(u)
  n = 0
  do
    read(u, '(a)', iostat=s) line
    if (s /= 0) exit
    n = n + 1
  end do
  print *, n, is_iostat_end(s), trim(line)
  backspace(u)
  backspace(u)
  read(u, '(a)') line
  print *, trim(line)
  backspace(u)
  write(u, '(a)') 'replaced, and the end'
  close(u)

  open(newunit=u, file=trim(p)//'/direct', access='direct', recl=80, form='unformatted')
  do i = 10, 1, -1
    numbers = i
    write(u, rec=i) numbers
  end do
  read(u, rec=7) numbers
  print *, numbers
  write(u, rec=30) numbers
  read(u, rec=31, iostat=s) numbers
  print *, s /= 0
  inquire(u, size=size_of, nextrec=i)
  print *, size_of, i
  close(u)

  x = [(i * 0.5d0, i = 1, 1000)]
  open(newunit=u, file=trim(p)//'/unformatted', form='unformatted')
  write(u) 1000
  write(u) x
  write(u) x(1:10)
  rewind(u)
  read(u) n
  read(u) y(1:n)
  print *, n, all(x == y)
  backspace(u)
  read(u) y(1:5)
  print *, y(1:5)
  endfile(u)
  close(u)

  open(newunit=u, file=trim(p)//'/stream', access='stream', form='unformatted', status='replace')
  write(u) x, 'end'
  write(u, pos=4001) -1d0
  inquire(u, pos=i, size=size_of)
  print *, i, size_of
  read(u, pos=3993) y(1:3)
  print *, y(1:3)
  flush(u)
  close(u)
  open(newunit=u, file=trim(p)//'/stream', access='stream', form='unformatted', position='append')
  write(u) 'more'
  close(u)

  open(newunit=u, file=trim(p)//'/formatted_stream', access='stream', form='formatted')
  write(u, '(a)', advance='no') 'no new line'
  write(u, '(a)') ' here'
  close(u)

  open(newunit=u, status='scratch', form='unformatted')
  write(u) x
  rewind(u)
  read(u) y
  print *, all(x == y)
  close(u)

  n = 17
  line = 'from a namelist'
  open(newunit=u, file=trim(p)//'/namelist', delim='quote')
  write(u, nml=settings)
  rewind(u)
  n = 0
  line = ''
  read(u, nml=settings)
  print *, n, trim(line)
  inquire(u, name=name, opened=open_)
  print *, trim(name) == trim(p)//'/namelist', open_
  close(u)

  inquire(file=trim(p)//'/text', exist=there, size=size_of)
  print *, there, size_of
  inquire(file=trim(p)//'/none', exist=there)
  print *, there
  open(newunit=u, file=trim(p)//'/none', status='old', iostat=s, iomsg=message)
  print *, s, index(message, 'No such file') > 0
  open(newunit=u, file=trim(p)//'/text', status='new', iostat=s)
  print *, s
  open(newunit=u, file=trim(p)//'/gone')
  write(u, *) 'x'
  close(u, status='delete')
  inquire(file=trim(p)//'/gone', exist=there)
  print *, there
  open(newunit=u, file=trim(p)//'/truncated')
  write(u, '(a)') 'one', 'two', 'three'
  rewind(u)
  write(u, '(a)') 'only'
  open(unit=77, file=trim(p)//'/left_open')
  write(77, '(a)') 'closed by the end of the program'
end program
