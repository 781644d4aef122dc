# SPDX-License-Identifier: BSD-3-Clause
# plfs run, sourced by run: programs of the prefix, what they get, and ranks of both MPI libraries on other nodes.

run_programs_of_the_prefix() {
	local rc=0
	"$plfs" run -m "$map" sh -c 'mkdir /plfs/bin; cp /bin/echo /plfs/bin/say; printf "#!/bin/sh\necho \"\$0 \$*\"; exit 7\n" >/plfs/bin/script
		chmod +x /plfs/bin/*'
	"$plfs" run -m "$map" /plfs/bin/say 'one  two' three | grep -x 'one  two three'
	"$plfs" run -m "$map" /plfs/bin/script 'a b' | grep -x '/plfs/bin/script a b'
	"$plfs" run -m "$map" /plfs/bin/script >/dev/null || rc=$?
	[ $rc = 7 ]
	PATH=/plfs/bin:$PATH "$plfs" run -m "$map" script x | grep -x '/plfs/bin/script x'
	rc=0
	"$plfs" run -m "$map" /plfs/bin/none 2>"$work/err" || rc=$?
	[ $rc = 127 ]
	rm -r "$back/bin"
}

run_status() {
	local rc=0
	"$plfs" run -m "$map" sh -c 'echo hello >/plfs/a && cat /plfs/a' | grep -x hello
	[ -f "$back/a" ]
	"$plfs" run -m "$map" -- sh -c 'exit 7' || rc=$?
	[ $rc = 7 ]
	PLFS_MAP=$map "$plfs" run cat /plfs/a | grep -x hello
	PLFS_MAP=/other=/nowhere "$plfs" run --map="$map" cat /plfs/a | grep -x hello
}

run_environment() {
	(
		export LD_PRELOAD=libm.so.6
		"$plfs" run -m "$map" -d config printenv LD_PRELOAD PLFS_MAP PLFS_DEBUG 2>/dev/null
	) >"$work/got"
	printf '%s\n' "libm.so.6:$work/libplfs.so" "$map" config | diff - "$work/got"
	"$plfs" run -m "$map" "$plfs" run printenv LD_PRELOAD >"$work/got"
	echo "$work/libplfs.so" | diff - "$work/got"
}

run_wrong() {
	wrong 78 "no mapping" "$plfs" run true
	wrong 78 'plfs": No such file or directory' "$plfs" run -m plfs true
	wrong 78 '"plfs" is not an absolute path' "$plfs" run -m plfs=/tmp true
	wrong 78 'options are separated by ","' "$plfs" run -m "$back{match=*.h5;match=x}" true
	wrong 78 '"match=*.h5"' "$plfs" run -m "$back{match=*.h5;match=x}" true
	wrong 78 "/nonexistent" "$plfs" run -m /plfs=/nonexistent true
	wrong 78 'libplfs: -m: ' "$plfs" run -m / true
	wrong 78 'libplfs: -m: ' "$plfs" check -m / "$back"
	wrong 78 'libplfs: PLFS_MAP: ' env PLFS_MAP=/ "$plfs" run true
	wrong 78 "nonsense" "$plfs" run -m "$map" -d nonsense true
	wrong 127 "nonexistent" "$plfs" run -m "$map" nonexistent
	wrong 126 "/etc/passwd" "$plfs" run -m "$map" /etc/passwd
	wrong 2 "no command" "$plfs" run -m "$map"
	wrong 2 "--frobnicate" "$plfs" run --frobnicate
	mv "$work/libplfs.so" "$work/hidden.so"
	wrong 1 "libplfs.so" "$plfs" run -m "$map" true || { mv "$work/hidden.so" "$work/libplfs.so"; return 1; }
	mv "$work/hidden.so" "$work/libplfs.so"
}

# What a job would get, and that nothing runs; each process says which library it has.
run_which() {
	local version other=$work/other
	version=$(sed -n 's/^VERSION = //p' ../../Makefile)
	mkdir -p "$other"
	strings -a "$work/libplfs.so" | grep -x "libplfs $version"
	PLFS_DEBUG=version LD_PRELOAD=$work/libplfs.so /bin/true 2>&1 | grep -xE "libplfs: \[[0-9]+\] version: $version, $work/libplfs.so"
	"$plfs" run -m "$map" -d version sh -c '/bin/true; /bin/true' 2>"$work/err"
	[ "$(cut -d ' ' -f 3- "$work/err" | sort | uniq -c)" = "      3 version: $version, $work/libplfs.so" ]
	PLFS_VERIFY=off "$plfs" run --which -m "/plfs=$back/." -m "$other" sh -c "echo ran >$work/ran" >"$work/got"
	cat <<-END | diff - "$work/got"
		Library    $work/libplfs.so
		Version    $version
		Mapping    /plfs, stored in $back
		Mapping    $other, in place
		LD_PRELOAD=$work/libplfs.so
		PLFS_MAP=/plfs=$back/.:$other
		PLFS_VERIFY=off
		Command    $(command -v sh)
	END
	[ ! -e "$work/ran" ]
	"$plfs" run --which -m "$map" | grep -c . | grep -x 5
	wrong 78 "no mapping" "$plfs" run --which
	grep -x "Version    $version" "$work/out"
	wrong 127 "nonexistent" "$plfs" run --which -m "$map" nonexistent
	wrong 78 '/nonexistent' "$plfs" run --which -m /plfs=/nonexistent
	mv "$work/libplfs.so" "$work/hidden.so"
	printf 'x\0libplfs x\0libplfs 9.8.7\0' >"$work/libplfs.so"
	"$plfs" run --which -m "$map" 2>&1 | tee "$work/got"
	mv "$work/hidden.so" "$work/libplfs.so"
	grep -x "Version    9.8.7, which is not that of this command: $version" "$work/got"
	rm -r "$other"
}

# What sbatch --export=NONE, or a list, leaves to srun: the settings by their names, whatever is in their values.
run_slurm_export() {
	local was wanted
	while read -r was wanted; do
		PLFS_VERIFY=read SLURM_EXPORT_ENV=$was "$plfs" run -m "$back{small=0,match=*.h5}" printenv SLURM_EXPORT_ENV >"$work/got"
		[ "$(cat "$work/got")" = "$wanted" ] || { echo "$was: $(cat "$work/got"), not $wanted"; return 1; }
	done <<-'END'
		NONE LD_PRELOAD,PLFS_MAP,PLFS_VERIFY
		NIL LD_PRELOAD,PLFS_MAP,PLFS_VERIFY
		ALL ALL
		ALL,A=1 ALL,A=1
		NONEOFIT,NIL NONEOFIT,LD_PRELOAD,PLFS_MAP,PLFS_VERIFY
		HOME,B=2 HOME,B=2,LD_PRELOAD,PLFS_MAP,PLFS_VERIFY
		PLFS_MAP=/x,HOME,LD_PRELOAD HOME,LD_PRELOAD,PLFS_MAP,PLFS_VERIFY
	END
	! env -u SLURM_EXPORT_ENV "$plfs" run -m "$back" printenv SLURM_EXPORT_ENV || return 1
}

run_mappings() {
	local name
	mkdir -p "$back/d" "$work/other"
	"$plfs" run -m "/plfs=$back{small=0}" -m "/q=$work/other{small=0}" sh -c 'echo a >/plfs/a; echo b >/q/b; printenv PLFS_MAP' >"$work/got"
	[ -k "$back/a" ] && [ -k "$work/other/b" ]
	[ "$(cat "$work/got")" = "/plfs=$back{small=0}:/q=$work/other{small=0}" ]
	"$plfs" stat -m "/q=$work/other" -m "/plfs=$back" /plfs/a /q/b | grep -c '^Logs' | grep -x 2
	# relative names stay what they were at the start, for all processes of the job
	(cd "$back" && "$plfs" run -m '.{small=0}' sh -c 'cd /; env printenv PLFS_MAP; echo here >"$0/here"' "$back") | grep -x "$back{small=0}"
	(cd "$work" && "$plfs" run -m '/q=backend/./d{small=0}' sh -c 'cd /; env sh -c "echo x >/q/x"')
	(cd "$back" && LD_PRELOAD=$work/libplfs.so PLFS_MAP='.{small=0}' sh -c 'cd /; env sh -c "echo y >\"$0/y\""' "$back")
	cat >"$work/kept.c" <<-'END'
		#include <unistd.h>
		int main(int argc, char **argv, char **envp) { return argc < 2 || chdir("/") || execve(argv[1], argv + 1, envp); }
	END
	gcc -o "$work/kept" "$work/kept.c" # it keeps the environment that it was started with
	(cd "$back" && LD_PRELOAD=$work/libplfs.so PLFS_MAP='.{small=0}' "$work/kept" /bin/sh -c "echo z >$back/z")
	for name in here d/x y z; do
		[ -k "$back/$name" ] || { echo "$name is no logical file"; return 1; }
	done
	[ -z "$(find / -maxdepth 1 -name here -o -maxdepth 1 -name y)" ]
	(cd "$back" && "$plfs" stat -m . here && cd d && "$plfs" stat -m .. ../y x && "$plfs" check -r -m . .)
	# a file of mappings, as people write them, found from everywhere
	printf '  /plfs=%s{small=0} \t # my files\r\n# x\n \t\n\t# y\n/q=%s{small=0}#1\n' "$back" "$work/other" >"$work/rc"
	wrong 78 'cannot make sense of "#1"' env PLFSRC="$work/rc" "$plfs" run true
	sed -i 's/#1$/ /' "$work/rc"
	(cd "$work" && PLFSRC=rc "$plfs" run sh -c 'cd /; env sh -c "echo r >/plfs/r; echo r >/q/r"')
	(cd "$work" && LD_PRELOAD=$work/libplfs.so PLFSRC=rc sh -c 'cd /; env sh -c "echo s >/plfs/s"')
	[ -k "$back/r" ] && [ -k "$back/s" ] && [ -k "$work/other/r" ]
	echo 'ckpt' >"$work/rc"
	wrong 78 '"ckpt" is not an absolute path' env PLFSRC="$work/rc" "$plfs" run true
	rm -r "$work/other" "$work/rc"
}

# Programs that no LD_PRELOAD reaches see stubs, so somebody has to say so.
run_unreached() {
	local rc=0 dir=$work/unreached
	mkdir -p "$dir"
	echo 'int main(int argc, char **argv) { (void)argv; return argc + 6; }' >"$dir/main.c"
	gcc -static -o "$dir/static" "$dir/main.c"
	# shellcheck disable=SC2028 # for the compiler
	echo '__asm__(".section .note.go.buildid,\"a\",@note\n.long 4, 4, 4\n.asciz \"Go\"\n.byte 0\n.long 1\n.text");' >>"$dir/main.c"
	gcc -o "$dir/like_go" "$dir/main.c"
	printf '#!%s\n' "$dir/static" >"$dir/script"
	chmod +x "$dir/script"
	wrong 7 "warning: $dir/static is linked statically" "$plfs" run -m "$map" "$dir/static"
	PATH=/nowhere:$dir:$PATH wrong 8 "warning: $dir/static is linked statically" "$plfs" run -m "$map" static x
	(cd "$dir" && PATH=:$PATH wrong 7 "warning: static is linked statically" "$plfs" run -m "$map" static)
	wrong 8 "warning: $dir/static, the interpreter of $dir/script is linked" "$plfs" run -m "$map" "$dir/script"
	wrong 7 "Go" "$plfs" run -m "$map" "$dir/like_go"
	"$plfs" run -m "$map" true 2>"$work/err"
	[ ! -s "$work/err" ]
	if [ "$(id -u)" = 0 ]; then
		cp /bin/true "$dir/suid"
		chown 65534 "$dir/suid" && chmod 4755 "$dir/suid"
		wrong 0 "is privileged" "$plfs" run -m "$map" "$dir/suid"
	else
		echo "no set-user-id program: only root can make one"
	fi
}

# A remote shell whose other end knows nothing of our environment. LD_PRELOAD is set, and empty: else the library would put all back.
remote_shell() {
	cat >"$work/rsh" <<-'END'
		#!/bin/bash
		while [ "${1#-}" != "$1" ]; do shift; done
		shift
		LD_PRELOAD= exec env -i HOME="$HOME" PATH="$PATH" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "$*"
	END
	chmod +x "$work/rsh"
}

ranks_wrote() {
	local found
	found=$(find "$back" -maxdepth 1 -name 'rank.*' -type f -perm -1000 | wc -l)
	[ "$found" = 2 ] || { echo "$found of 2 ranks wrote a file with logs:" && ls -l "$back"; return 1; }
	rm -f "$back"/rank.*
}

# The sleep: Open MPI 5 (Debian 13) hangs for good, without us too, when ranks on another node end at once: 20 of 35 runs
# did, and none of 45 in which a rank starts one program more.
write_rank='echo "$0" >/plfs/rank.$$ && sleep 0.1'

# Two ranks on another node, with the output in $work/out. Open MPI 5 fails now and then when it launches by a remote
# shell, without us too: not three times.
openmpi_remotely() { # ARGUMENT...; BEFORE: words before the command
	local try
	for try in 1 2 3; do
		rm -f "$back"/rank.*
		$BEFORE "$plfs" run -m "$map" timeout 60 mpirun.openmpi --mca plm_rsh_agent "$work/rsh" --host plfs-node:2 -n 2 "$@" \
			>"$work/out" && return
		echo "mpirun failed, $try of 3 times"
	done
	return 1
}

run_openmpi() {
	local rc=0
	remote_shell
	"$plfs" run -m "$map" timeout 60 mpirun.openmpi -n 2 sh -c "$write_rank" || rc=$?
	[ $rc = 0 ] || { echo "mpirun without a remote shell: exit code $rc"; return 1; }
	ranks_wrote
	openmpi_remotely sh -c "$write_rank"
	ranks_wrote
	OTHER=1 openmpi_remotely -x OTHER sh -c "$write_rank"
	ranks_wrote
	OTHER=1 OMPI_MCA_mca_base_env_list=OTHER openmpi_remotely sh -c "$write_rank"
	ranks_wrote
	BEFORE="$plfs run -m /elsewhere=$back" openmpi_remotely sh -c "$write_rank" # the inner one counts
	ranks_wrote
	PLFS_CONSISTENCY=posix PLFS_VERIFY=read PLFS_DEBUG=config@/dev/null openmpi_remotely sh -c 'env | grep ^PLFS | grep -v ^PLFS_TEST_'
	sort "$work/out" | uniq -c | awk '{ print $1 $2 }' >"$work/got"
	printf '2%s\n' PLFS_CONSISTENCY=posix PLFS_DEBUG=config@/dev/null "PLFS_MAP=$map" PLFS_VERIFY=read |
		diff - "$work/got"
	"$plfs" run -m "$map" mpirun.openmpi -n 2 sh -c 'exit 3' || rc=$?
	[ $rc = 3 ] || { echo "mpirun: exit code $rc, not 3"; return 1; }
}

run_mpich() {
	local remote="timeout 60 mpiexec.mpich -launcher rsh -launcher-exec $work/rsh -hosts plfs-node -n 2" rc=0
	remote_shell
	"$plfs" run -m "$map" timeout 60 mpiexec.mpich -n 2 sh -c "$write_rank"
	ranks_wrote
	"$plfs" run -m "$map" $remote sh -c "$write_rank"
	ranks_wrote
	"$plfs" run -m "$map" mpiexec.mpich -n 2 sh -c 'exit 3' || rc=$?
	[ $rc = 3 ] || [ $rc = 141 ] # the launcher dies of SIGPIPE now and then, without us as well
}
