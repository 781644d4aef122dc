# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Programs in other languages, each with an I/O library of its own; they lie in programs/.
. "$HERE/common.bash"

cxx_streams_and_filesystem() {
	_need "$BIN/streams"
	"$BIN/streams"
}

fortran_records() {
	_need "$BIN/records"
	"$BIN/records"
	mkdir $P/sub
	# shellcheck disable=SC2097,SC2098 # the P of the test, and one of the program
	cd $P/sub && GFORTRAN_UNBUFFERED_ALL=y P=. TMPDIR=$P "$BIN/records"
}

java_streams_channels_and_files() {
	_need java javac
	_not_sanitized
	java -XX:-UsePerfData -Xshare:auto -Xmx64m -cp "$BIN" Store 2>&1
}

perl_files_and_directories() {
	_need perl
	perl - <<'PERL'
use strict; use Fcntl qw(:DEFAULT :flock :seek); use File::Temp; use File::Copy; use File::Find; use File::Path; use IO::File; use Cwd;
my $p = $ENV{P};
for my $mode ('>', '<', '>>', '+<', '+>', '+>>') {
	open(my $f, $mode, "$p/f") or print "$mode: $!\n" and next;
	print $f "mode $mode\n" if $mode ne '<';
	seek($f, 0, 0);
	my @l = <$f>;
	print "$mode: ", tell($f), " ", scalar(@l), " ", eof($f) ? 'eof' : 'more', "\n";
}
sysopen(my $s, "$p/s", O_RDWR | O_CREAT | O_EXCL, 0600) or die;
print syswrite($s, "0123456789", 4, 3), sysseek($s, 2, SEEK_SET), " ", sysread($s, my $b, 10), $b, "\n";
truncate($s, 3); flock($s, LOCK_EX | LOCK_NB) or print "no lock\n"; print -s $s, "\n"; close $s;
sysopen($s, "$p/s", O_RDWR | O_CREAT | O_EXCL) or print "$!\n";
open(my $dup, '>&', \*STDOUT); open(STDOUT, '>', "$p/out"); $| = 1;
print "perl "; system('echo child'); print `echo backquote`; printf "%s\n", 'end';
close STDOUT; open(STDOUT, '>&', $dup);
open(my $o, '<', "$p/out"); print <$o>; close $o;
if (open(my $k, '-|')) { print "kid: $_" while <$k>; close $k } else { open(my $i, '<', "$p/out"); print <$i>; exit 0 }
open(my $w, '|-', "cat >$p/piped") or die; print $w "through a pipe\n"; close $w; print -s "$p/piped", "\n";
{ local @ARGV = ("$p/out"); local $^I = '.orig'; while (<>) { s/perl/PERL/; print } }
copy("$p/out", "$p/copy"); move("$p/copy", "$p/moved"); mkpath("$p/d/e");
my $t = File::Temp->new(DIR => $p); print $t "temp"; $t->flush; print -s $t->filename, "\n"; undef $t;
my @found; find({wanted => sub { push @found, $File::Find::name =~ s/^\Q$p//r . (-d) }, no_chdir => 1}, $p); print join(' ', sort @found), "\n";
opendir(my $d, $p); print join(' ', sort grep !/^\./, readdir $d), "\n"; rewinddir $d; closedir $d;
chdir "$p/d" or die; print getcwd() eq "$p/d", "\n"; chdir '/'; rmtree("$p/d"); print -e "$p/d" ? 'there' : 'gone', "\n";
print join(' ', map { -e "$p/$_" ? (stat _)[7] : 'none' } qw(f s out out.orig moved none)), "\n";
print join(' ', sort map { s/.*\///r } glob("$p/o*")), "\n" if $ENV{GLOB}; link("$p/f", "$p/l"); symlink('f', "$p/y"); print readlink("$p/y"), (stat "$p/f")[3], unlink("$p/l", "$p/y"), "\n";
use POSIX; my $fd = POSIX::open("$p/px", O_CREAT | O_WRONLY, 0644); POSIX::write($fd, "posix", 5); print POSIX::dup2($fd, 9), "\n"; POSIX::close($fd);
open(my $nine, '>&=', 9); print $nine ' nine'; close $nine; print -s "$p/px", "\n"; utime(1, 2, "$p/px"); print((stat "$p/px")[9], "\n");
binmode(STDOUT, ':utf8'); open(my $u, '>:encoding(UTF-16)', "$p/u"); print $u "\x{263a}\n"; close $u; print -s "$p/u", "\n";
open(my $m, '<', \ "in memory"); print <$m>, "\n"; print STDOUT "done\n"; exec 'cat', "$p/f";
PERL
}
