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
	wrong 78 '"plfs" is not an absolute path' "$plfs" run -m plfs true
	wrong 78 "/nonexistent" "$plfs" run -m /plfs=/nonexistent true
	wrong 78 "nonsense" "$plfs" run -m "$map" -d nonsense true
	wrong 127 "nonexistent" "$plfs" run -m "$map" nonexistent
	wrong 126 "/etc/passwd" "$plfs" run -m "$map" /etc/passwd
	wrong 2 "no command" "$plfs" run -m "$map"
	wrong 2 "--frobnicate" "$plfs" run --frobnicate
	mv "$work/libplfs.so" "$work/hidden.so"
	wrong 1 "libplfs.so" "$plfs" run -m "$map" true || { mv "$work/hidden.so" "$work/libplfs.so"; return 1; }
	mv "$work/hidden.so" "$work/libplfs.so"
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
	[ "$(find "$back" -maxdepth 1 -name 'rank.*' -type f -perm -1000 | wc -l)" = 2 ]
	rm -f "$back"/rank.*
}

write_rank='echo "$0" >/plfs/rank.$$'

run_openmpi() {
	local remote="timeout 60 mpirun.openmpi --mca plm_rsh_agent $work/rsh --host plfs-node:2 -n 2"
	remote_shell
	"$plfs" run -m "$map" timeout 60 mpirun.openmpi -n 2 sh -c "$write_rank"
	ranks_wrote
	"$plfs" run -m "$map" $remote sh -c "$write_rank"
	ranks_wrote
	OTHER=1 "$plfs" run -m "$map" $remote -x OTHER sh -c "$write_rank"
	ranks_wrote
	OTHER=1 OMPI_MCA_mca_base_env_list=OTHER "$plfs" run -m "$map" $remote sh -c "$write_rank"
	ranks_wrote
	"$plfs" run -m "/elsewhere=$back" "$plfs" run -m "$map" $remote sh -c "$write_rank" # the inner one counts
	ranks_wrote
	PLFS_CONSISTENCY=posix PLFS_VERIFY=read PLFS_DEBUG=config@/dev/null "$plfs" run -m "$map" $remote sh -c 'env | grep ^PLFS' >"$work/out"
	[ "$(sort "$work/out" | uniq -c | awk '{ print $1 $2 }' | paste -sd ' ')" = \
		"2PLFS_CONSISTENCY=posix 2PLFS_DEBUG=config@/dev/null 2PLFS_MAP=$map 2PLFS_VERIFY=read" ]
	rc=0
	"$plfs" run -m "$map" mpirun.openmpi -n 2 sh -c 'exit 3' || rc=$?
	[ $rc = 3 ]
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
