# SPDX-License-Identifier: BSD-3-Clause
# Bad input: settings, backends and paths that are wrong. Each is a clear message or errno, and nothing is lost.
. "$HERE/alone.bash"

file_system_mounted_below_a_backend() {
	[ "$(id -u)" = 0 ] && unshare -m true 2>"$W/unshare" || _skip "needs to mount: $(cat "$W/unshare")"
	mkdir "$B/m"
	cat >"$W/inside.sh" <<-'EOF'
		mount -t tmpfs none "$B/m" || exit 77
		env LD_PRELOAD="$PRE" PLFS_MAP="$PFX=$B{small=0}" sh -c '
			echo one >$PFX/m/f && echo two >>$PFX/m/f && cat $PFX/m/f && stat -c "%A %s" $PFX/m/f
			umask 077; set -C; echo three >$PFX/m/g; chmod u-w $PFX/m/g; cat $PFX/m/g; mv $PFX/m/f $PFX/m/h'
		stat -c "%A %s" "$B/m/g"; cat "$B/m/h"
	EOF
	PRE=$PRE PFX=$PFX B=$B unshare -m bash "$W/inside.sh" >"$W/out" 2>&1
	[ $? != 77 ] || _skip "needs to mount: $(cat "$W/out")"
	_is "what is seen there" "$(cat "$W/out")" "$(printf '%s\n' one two '-rw-r--r-- 8' three '-r-------- 6' one two)"
	[ ! -e "$B/.plfs" ] || _fail "a container was made: $(find "$B")"
}

backend_missing() {
	_refuses "$PFX=$W/none" "$W/none"
	_refuses "$W/none" "$W/none"
	_refuses "$PFX=$B,$W/none" "$W/none"
	_refuses "$PFX=$B:/plfs-other=$W/none" "$W/none"
	[ ! -e "$W/none" ] || _fail "it is still missing"
}

backend_is_no_directory() {
	echo text >"$W/file"
	ln -s none "$W/dangling"
	_refuses "$PFX=$W/file" "$W/file"
	_refuses "$W/file" "$W/file"
	_refuses "$PFX=$W/dangling" "$W/dangling"
	_refuses "$PFX=/dev/null" /dev/null
	_is "the file" "$(cat "$W/file")" text
}

mapping_is_nonsense() {
	local map
	for map in = "$PFX=" "=$B" relative "relative=$B" "$PFX=relative" "$PFX==$B" "$PFX=$B=$B" "$PFX=$B:" ":$PFX=$B" "$PFX=$B::" \
		"$PFX=$B,"  "$PFX=,$B" "$PFX=$B{" "$PFX=$B{mode=log" "$PFX=$B}" "$PFX=$B{mode=odd}" "$PFX=$B{odd=1}" "$PFX=$B{mode}" \
		"$PFX=$B{match=}" "$PFX=$B{mode=log}x" "$PFX=$B:$PFX=$B" "/=$B" / "$PFX=/" "{mode=log}" : "," "$PFX=$B{mode=log,}" \
		"$PFX=$B{,}" "$PFX=$B{{}}" "$(printf '/%05000d' 0)=$B" "$PFX=$(printf '/%05000d' 0)" ' ' "$PFX $B" "../x=$B"; do
		_refuses "$map"
	done
}

mappings_that_overlap() {
	mkdir "$B/below"
	_refuses "$PFX=$B:$PFX/=$B/below" "$PFX"
	# One inside the other is fine as long as no path has two meanings.
	MAP="$PFX=$B:$PFX-more=$W/more"
	mkdir "$W/more"
	_under sh -c "echo one >$PFX/a; echo two >$PFX-more/a; cat $PFX/a $PFX-more/a" >"$W/out"
	_is output "$(cat "$W/out")" $'one\ntwo'
}

settings_are_nonsense() {
	export PLFS_CONSISTENCY=odd
	_refuses "$PFX=$B" PLFS_CONSISTENCY
	unset PLFS_CONSISTENCY
	export PLFS_VERIFY=odd
	_refuses "$PFX=$B" PLFS_VERIFY
	unset PLFS_VERIFY
	export PLFS_DEBUG=odd
	_refuses "$PFX=$B" PLFS_DEBUG
	PLFS_DEBUG=all@$W/none/x
	_refuses "$PFX=$B" PLFS_DEBUG
	unset PLFS_DEBUG
	export PLFSRC=$W/none
	_refuses "" "$W/none"
	echo "$PFX=$W/missing" >"$W/rc"
	PLFSRC=$W/rc
	_refuses "" "$W/missing"
	printf '# a site\n\n%s\nnonsense\n' "$PFX=$B" >"$W/rc"
	_refuses "" nonsense
	printf '# a site\n\n%s{mode=log}\n' "$PFX=$B" >"$W/rc"
	MAP='' _under sh -c "echo x >$PFX/a; cat $PFX/a" >"$W/out"
	_is output "$(cat "$W/out")" x
}

no_mapping_is_no_error() {
	MAP='' _under sh -c "echo x >$W/a; cat $W/a" >"$W/out"
	_is "output" "$(cat "$W/out")" x
	env -u PLFS_MAP LD_PRELOAD="$PRE" cat "$W/a" >"$W/out" || _fail "cat ran"
}

backend_inside_a_container_directory() {
	_under sh -c "echo x >$PFX/a"
	_refuses "$PFX=$B/.plfs" .plfs
	_refuses "$B/.plfs" .plfs
	_refuses "$PFX=$(_container)" .plfs
	_refuses "/plfs-other=$B:$PFX=$B/.plfs" .plfs
	_under cat "$PFX/a" >"$W/out"
	_is content "$(cat "$W/out")" x
}

backend_not_writable() {
	_need_root
	chmod 755 "$B"
	_under sh -c "echo x >$PFX/a"
	_user sh -c "cat $PFX/a; echo y >>$PFX/a" >"$W/out"
	_is content "$(cat "$W/out")" x
	grep -q 'Permission denied' "$W/err" || _fail "permission is denied: $(cat "$W/err")"
	_user sh -c "echo y >$PFX/new"
	grep -qi 'Permission denied' "$W/err" || _fail "permission is denied to make a file"
	_user sh -c "rm -f $PFX/a"
	grep -qi 'Permission denied' "$W/err" || _fail "permission is denied to remove a file"
	rm -rf "$B/.plfs" "$B/a"
	_user sh -c "ls $PFX; echo y >$PFX/new"
	grep -qi 'Permission denied' "$W/err" || _fail "permission is denied in a backend that was never used"
	[ ! -e "$B/.plfs" ] || _fail "nothing was made"
}

backend_not_searchable() {
	_need_root
	_under sh -c "echo x >$PFX/a"
	chmod 700 "$B"
	_user sh -c "cat $PFX/a" >"$W/out"
	[ $rc != 0 ] || _fail "an error"
	chmod 755 "$B"
	_user sh -c "cat $PFX/a" >"$W/out"
	_is content "$(cat "$W/out")" x
}

small_files_of_two_users() {
	_need_root
	chmod 1777 "$B"
	MAP=$PFX=$B
	_under sh -c "umask 0; echo root >$PFX/r; echo both >$PFX/both"
	_user sh -c "umask 0; echo user >$PFX/u; echo user >>$PFX/both; cat $PFX/r $PFX/both" >"$W/out"
	[ ! -s "$W/err" ] || _fail "no message"
	_is "what the user reads" "$(cat "$W/out")" $'root\nboth\nuser'
	_under sh -c "echo root >>$PFX/both; chmod 600 $PFX/r $PFX/both; cat $PFX/both" >"$W/out"
	_is "what root reads" "$(cat "$W/out")" $'both\nuser\nroot'
	_user sh -c "cat $PFX/r; echo x >>$PFX/both" >"$W/out"
	[ $rc != 0 ] && [ ! -s "$W/out" ] || _fail "no reading"
	_under sh -c "head -c 70000 /dev/zero >>$PFX/u" # from here on in logs
	_user sh -c "echo end >>$PFX/u; tail -c 4 $PFX/u" >"$W/out"
	_is "the user's end" "$(cat "$W/out")" end
	[ -z "$(find "$B" -name 'data.*' -perm /022)" ] || _fail "logs that others could write"
}

# A sync by who may only read: its logs are on the disk, closed ones and those of a process that goes on.
sync_by_a_reader() {
	local n
	_need_root
	chmod 755 "$B"
	_under /usr/bin/python3 -c 'import os, sys
p = sys.argv[1] + "/"
for n in "closed", "open":
    f = os.open(p + n, os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(f, b"x" * 300000)
    if n == "closed":
        os.close(f)
open(p + "empty", "w").close()
if os.fork() == 0:
    os.setresuid(65534, 65534, 65534)
    os.execv(sys.executable, ["python3", "-c", """import os, sys
for n in "closed", "open", "empty":
    f = os.open(sys.argv[1] + n, os.O_RDONLY)
    for sync in os.fsync, os.fdatasync:
        sync(f)
        print(n, os.pread(f, 1, 299999), os.fstat(f).st_size)
        sync(f)
""", p])
sys.exit(os.wait()[1] != 0)' "$PFX" >"$W/out"
	_is "the reader" $rc 0
	for n in closed open; do
		_is "lines of $n" "$(grep -cx "$n b'x' 300000" "$W/out")" 2
	done
}

shared_backend_of_two_users() {
	_need_root
	chmod 1777 "$B"
	_under sh -c "umask 0; echo root >$PFX/r; echo both >$PFX/both"
	_user sh -c "umask 0; echo user >$PFX/u; echo user >>$PFX/both; cat $PFX/r $PFX/both" >"$W/out"
	[ ! -s "$W/err" ] || _fail "no message"
	_is "what the user reads" "$(cat "$W/out")" $'root\nboth\nuser'
	_under sh -c "echo root >>$PFX/both; echo root >>$PFX/u; cat $PFX/both $PFX/u" >"$W/out"
	_is "what root reads" "$(cat "$W/out")" $'both\nuser\nroot\nuser\nroot'
	_under sh -c "rm $PFX/u; chmod 600 $PFX/r $PFX/both; cat $PFX/both" >"$W/out"
	_user sh -c "cat $PFX/r" >"$W/out"
	[ $rc != 0 ] && [ ! -s "$W/out" ] || _fail "no reading"
	find "$B/.plfs" -type f -name 'data.*' -uid 0 >"$W/logs"
	[ -s "$W/logs" ] || _fail "root's logs"
	while read -r log; do
		setpriv --reuid 65534 --regid 65534 --clear-groups head -c 1 "$log" 2>/dev/null | grep -q . &&
			_fail "another's data is not to be had from the logs either: $(ls -l "$log")"
	done <"$W/logs"
	_user sh -c "rm -f $PFX/r"
	_under sh -c "cat $PFX/r" >"$W/out"
	_is "root's file" "$(cat "$W/out")" root
}

read_only_backend() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	_under sh -c "echo x >$PFX/a"
	export B PFX PRE W
	unshare -m bash -c '. "$HERE/alone.bash"; mount --bind "$B" "$B" && mount -o remount,ro,bind "$B" || exit 77
		_under sh -c "cat $PFX/a; echo y >$PFX/b; echo z >>$PFX/a" >"$W/out"
		_is content "$(head -n 1 "$W/out")" x
		[ "$(grep -c "Read-only file system" "$W/err")" = 2 ] || _fail "read-only: $(cat "$W/err")"'
}

plain_files_stay_plain() {
	echo plain >"$B/p"
	mkdir "$B/d"
	echo PLFSTUB1 >"$B/d/almost"
	_under sh -c "cat $PFX/p $PFX/d/almost; echo more >>$PFX/p; stat -c %s $PFX/p; cp $PFX/p $PFX/copy; cat $PFX/copy" >"$W/out"
	_is output "$(cat "$W/out")" $'plain\nPLFSTUB1\n11\nplain\nmore'
	_is "the file without the library" "$(cat "$B/p")" $'plain\nmore'
}

socket_with_a_longer_name_behind_it() {
	local long=$B/$(printf '%0100d' 0)
	mkdir "$long"
	MAP=/plfs-s=$long _under python3 -c '
import os, socket, sys
p = sys.argv[1] + "/socket"
s, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
s.bind(p)
s.listen(1)
c.connect(p)
s.accept()[0].send(b"x")
print(c.recv(1), os.listdir(sys.argv[1]))
n = "n" * 60 + "m" * 30
try:
    socket.socket(socket.AF_UNIX).bind(sys.argv[1] + "/" + n)
except OSError as e:
    print(e.errno)
' /plfs-s >"$W/out" # short: python refuses what an address has no room for
	_is "what came" "$(paste -sd' ' "$W/out")" "b'x' ['socket'] 36"
	[ -S "$long/socket" ] || _fail "the socket is in the backend"
}

program_that_may_be_executed_but_not_read() {
	_need_root
	_under sh -c "cp /bin/echo $PFX/e; chmod 711 $PFX/e"
	PLFS_DEBUG=refuse _user env $PFX/e never
	_is "exit code" "$rc" 126
	grep -q "refuse.*\(EACCES\|Permission denied\) on" "$W/err" || _fail "no line that says why: $(cat "$W/err")" # the last with glibc before 2.32
	[ -k "$B/e" ] || _fail "it is still logical"
	_under env $PFX/e once >"$W/out"
	_user env $PFX/e plain >>"$W/out"
	_is "what was said" "$(paste -sd' ' "$W/out")" "once plain"
}

library_by_the_name_of_a_prefix_that_does_not_exist() {
	_under sh -c "cd $PFX && echo 'int x = 1;' | gcc -shared -fPIC -o libx.so -x c - && echo 'extern int x; int main(void) { return x; }' |
		gcc -o main -x c - -L. -lx -Wl,-rpath,$PFX"
	_under env $PFX/main
	grep -q "shared libraries: libx.so" "$W/err" || _fail "the loader does not say what it misses"
	_is "exit code" "$rc" 127
	_under env LD_LIBRARY_PATH=$PFX $PFX/main
	_is "exit code with LD_LIBRARY_PATH" "$rc" 127
	_under env LD_LIBRARY_PATH=$B $PFX/main
	_is "exit code by the backend's name" "$rc" 1
}

spawn_attribute_of_a_later_library() {
	cat >"$W/spawn.c" <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	posix_spawnattr_init(&attr);
	*(short *)&attr = 0x100; /* of glibc 2.39; this one's setter would refuse it */
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, argv[1], O_WRONLY | O_CREAT, 0644);
	int error = posix_spawn(&(pid_t){0}, "/bin/true", &fa, &attr, argv, NULL);
	puts(error == EINVAL ? "EINVAL" : strerror(error));
	return argc - 2;
}
END
	gcc -w -o "$W/spawn" "$W/spawn.c"
	PLFS_DEBUG=refuse _under "$W/spawn" $PFX/out >"$W/out"
	_is "the error" "$(cat "$W/out")" EINVAL
	grep -q "refuse.*posix_spawn" "$W/err" || _fail "no line that says why: $(cat "$W/err")"
	[ ! -e "$B/out" ] || _fail "something was made"
}

# What goes with a close goes with the exec that closes the library's descriptors.
record_locks_end_with_exec() {
	cat >"$W/locks.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
static int fd;
static void look(const char *when)
{
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (!fork()) {
		fcntl(fd, F_GETLK, &lk);
		printf("%s: %s\n", when, lk.l_type == F_UNLCK ? "none" : "locked");
		exit(0);
	}
	wait(NULL);
}
int main(int argc, char **argv)
{
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (argc == 4) {
		fd = atoi(argv[3]);
		look("after exec");
		return flock(open(argv[2], O_RDONLY), LOCK_EX | LOCK_NB) ? 0 : 1;
	}
	fd = open(argv[2], O_RDWR | O_CREAT, 0644);
	if (fd < 0 || fcntl(fd, F_SETLK, &lk) || flock(fd, LOCK_EX))
		return 2;
	look("before");
	snprintf(argv[1], 2, "%d", fd);
	execl("/proc/self/exe", argv[0], "again", argv[2], argv[1], (char *)NULL);
	return 3;
}
END
	gcc -w -o "$W/locks" "$W/locks.c"
	PLFS_DEBUG=refuse _under "$W/locks" number $PFX/a >"$W/out"
	_is "the exit code (3: no exec, 1: no flock any more)" $rc 0
	_is "what it says" "$(cat "$W/out")" $'before: locked\nafter exec: none'
	grep -q "refuse.*record locks" "$W/err" || _fail "no line that says so: $(cat "$W/err")"
}
