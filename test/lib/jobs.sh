# SPDX-License-Identifier: BSD-3-Clause
# For bash scripts that run whole programs under the library: the environment, the MPI launchers, the count of
# jobs. Sourced, with BUILD naming the build directory. PLAIN=yes runs everything on the plain file
# system instead, which tests the tests. KEEP=yes keeps the files of a run.

: "${BUILD:?the build directory}"
BUILD=$(cd "$BUILD" && pwd) || exit 2
TEST=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preload=${PRELOAD:-$BUILD/libplfs.so}

umask 022
unset LD_PRELOAD PLFS_MAP
export LC_ALL=C HDF5_USE_FILE_LOCKING=TRUE
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
# The same for Open MPI 5, whose ROMIO has another name too.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl_sm_single_copy_mechanism=none
# Half of what a launch computes is looking for devices: by Open MPI, which in the end takes ob1 where there is no fabric, and
# by hwloc in each rank, which reads the registers of the PCI bus and loads libraries for graphics.
export OMPI_MCA_pml=ob1 HWLOC_COMPONENTS=-linux:pci,-linux:io,-pci HWLOC_PLUGINS_PATH=/nonexistent
case $(mpirun.openmpi --version 2>/dev/null) in *') '[1-4].*) romio=romio321 ;; *) romio=romio341 ;; esac

# $work/backend is what lies below $mnt; $work/plain is an ordinary directory to compare with. OPTIONS are those of the
# mapping; these jobs are about logs, so small files get theirs as well.
work=$(mktemp -d "${TMPDIR:-/tmp}/plfs-test.XXXXXX") || exit 2
mkdir "$work/backend" "$work/plain" "$work/log"
[ "$KEEP" = yes ] || trap 'rm -rf "$work"' EXIT
if [ "$PLAIN" = yes ]; then
	mnt=$work/backend
	under_env=(PLFS_TEST_PLAIN=1)
else
	[ -e "${preload##*:}" ] || { echo "$preload is missing: run make first" >&2; exit 2; }
	mnt=/plfs
	under_env=("LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$work/backend${OPTIONS-{small=0\}}")
fi

# Whether number N of many that are alike has its turn: with PLFS_TEST_SPARSE (make check) one of so many.
has_turn() { # N
	[ $((($1 + ${PLFS_TEST_TURN:-0}) % ${PLFS_TEST_SPARSE:-1})) = 0 ]
}

# Run a command under the library.
under() {
	env "${under_env[@]}" "$@"
}

# launch STACK RANKS COMMAND...: an MPI job whose ranks, and only they, run under the library. The stacks are
# ompio and romio (Open MPI's two ways to do MPI-IO) and mpich.
launch() {
	local stack=$1 ranks=$2
	shift 2
	case $stack in
	ompio|romio) set -- mpirun.openmpi --mca io "${stack/romio/$romio}" $(mpi_env -x =) -n "$ranks" "$@" ;;
	mpich) set -- mpiexec.mpich $(mpi_env -genv ' ') -n "$ranks" "$@" ;;
	esac
	run_launcher "$@"
}

# LAUNCH_EXEC: in the place of this shell, whose number is then the launcher's.
run_launcher() {
	if [ -n "$LAUNCH_EXEC" ]; then exec "$@"; else timeout -k 5 "${LIMIT_S:-180}" "$@"; fi
}

# The variables of under_env as a launcher's options: mpi_env OPTION SEPARATOR.
mpi_env() {
	local pair
	for pair in "${under_env[@]}"; do
		printf '%s %s%s%s ' "$1" "${pair%%=*}" "$2" "${pair#*=}"
	done
}

stack_dir() {
	case $1 in mpich) echo mpich ;; *) echo openmpi ;; esac
}

nr_ok=0 nr_failed=0 nr_skipped=0

to_first_error() { (set -e; "$@"); }

# job NAME COMMAND...: run it in a subshell that stops at its first error; one line, and what it said if it failed.
# Exit code 77: it cannot run here, for the reason in its last line.
job() {
	local name=$1 log=$work/log/job took rc TIMEFORMAT='%R %U %S'
	shift
	{ time to_first_error "$@" </dev/null >"$log" 2>&1; } 2>"$work/log/time"
	rc=$?
	took=$(awk '{ printf "%.1f s, %.1f of CPU", $1, $2 + $3 }' "$work/log/time")
	if [ $rc = 0 ]; then
		nr_ok=$((nr_ok + 1))
		echo "ok   $name ($took)"
	elif [ $rc = 77 ]; then
		skip "$name" "$(tail -n 1 "$log")"
	else
		nr_failed=$((nr_failed + 1))
		echo "FAIL $name ($took, exit $rc)"
		tail -n "${LOG_LINES:-15}" "$log" | cut -c1-300 | sed 's/^/     | /'
		mkdir -p "$work/failed"
		mv "$work/backend" "$work/failed/backend.$nr_failed"
		mv "$work/plain" "$work/failed/plain.$nr_failed"
		cp "$log" "$work/failed/log.$nr_failed"
		mkdir "$work/backend" "$work/plain"
		[ "$KEEP" = yes ] && echo "     | kept in $work/failed"
	fi
}

# The words of the command, each a part of the names of the jobs that it chooses. None: all jobs.
only=()
all_jobs=()

wanted() { # NAME
	local word
	all_jobs+=("${1%%, seed *}")
	[ ${#only[@]} = 0 ] && return
	for word in "${only[@]}"; do
		[[ $1 == *"$word"* ]] && was_wanted=yes && return
	done
	return 1
}

skip() {
	nr_skipped=$((nr_skipped + 1))
	echo "skip $1 ($2)"
}

# The closing line, and the script's exit status.
finish() {
	if [ $nr_failed = 0 ] && [ ${#only[@]} != 0 ] && [ ${#all_jobs[@]} != 0 ] && [ -z "$was_wanted" ]; then
		printf "no job holds '%s' in its name; the jobs are: %s\n" "${only[*]}" \
			"$(printf '%s\n' "${all_jobs[@]}" | paste -sd , | sed 's|,|, |g')" >&2
		exit 2
	fi
	echo "$nr_ok passed, $nr_failed failed, $nr_skipped skipped"
	[ $nr_failed = 0 ]
	exit
}

# listing DIR: names, types, modes, links, owners and sizes of all that is below, as ls and stat tell. The line
# "total" and the blocks of a file are left out: they are about the storage, not about the file.
listing() {
	(
		if [ "$1" = "$mnt" ] || [ "${1#"$mnt"/}" != "$1" ]; then run=under; else run=; fi
		$run ls -lR --time-style=+ "$1" | sed -e "s|^$1|.|" -e '/^total /d'
		$run find "$1" -type f -exec stat -c '%s %F %a %A %h %U %G %n' {} + | sed "s| $1| .|" | sort -k8
	)
}

# tools_agree DIR EXPECTED: what ls, stat, md5sum, cp and rm do with a directory below the mount is what they do with
# the plain one. Both directories are gone afterwards.
tools_agree() {
	local dir=$1 plain=$2 copy=$work/copy
	set -e
	listing "$plain" >"$work/want"
	listing "$dir" >"$work/got"
	diff "$work/want" "$work/got"
	(cd "$plain" && find . -type f -exec md5sum {} +) | sort >"$work/want"
	(under sh -c "cd $dir && find . -type f -exec md5sum {} +") | sort >"$work/got"
	diff "$work/want" "$work/got"
	rm -rf "$copy"
	under cp -rp "$dir" "$copy"
	diff -r "$plain" "$copy"
	(cd "$plain" && stat -c '%s %F %a %U %n' -- *) >"$work/want"
	(cd "$copy" && stat -c '%s %F %a %U %n' -- *) >"$work/got"
	diff "$work/want" "$work/got"
	under sh -c "rm $dir/* && rmdir $dir"
	rm -rf "$copy" "$plain"
	test ! -e "$work/backend/${dir#"$mnt"/}"
	nothing_left
}

# When the last file is unlinked no log may be left in the backend.
nothing_left() {
	local left
	left=$(find "$work/backend" -name .plfs -prune -o -type f -print | head -1)
	[ -z "$left" ] || return 0
	left=$(find "$work/backend" -type f -name 'data.*' | head -5)
	[ -z "$left" ] || { echo "logs of removed files are left:"; echo "$left"; return 1; }
}
