# SPDX-License-Identifier: BSD-3-Clause
# A file system of several hosts, from nothing to two mounts and back. Sourced after ../lib/jobs.sh and ../mpi/hosts.sh: defines fs, where
# hosts h1 and h2 have it.

. ../cluster/ceph.sh
. ../cluster/gluster.sh

fs=$work/fs
mkdir "$fs"
engines="ceph-ec ceph-replicated gluster-replica gluster-disperse"

# Why an engine cannot run here, or nothing.
engine_missing() {
	"${1%-*}_missing"
}

in_keepers() {
	local keeper
	for keeper in "${keepers[@]}"; do
		[ "$1" != "$keeper" ] || return 0
	done
	! [ "$(readlink "/proc/$1/ns/pid")" = "$(readlink /proc/self/ns/pid)" ]
}

# engine_up ENGINE: false, with what it said in $work/log/engine, if it does not come up.
engine_up() {
	hosts_up s1 s2 s3 h1 h2 && (set -e; "${1%-*}_start" "${1#*-}") >"$work/log/engine" 2>&1 </dev/null
}

engine_down() {
	local host file
	# What a job has started may have lost its parents by now, but not its environment.
	for file in $(grep -lz "^HOSTS=$HOSTS\$" /proc/[0-9]*/environ 2>/dev/null); do
		file=${file#/proc/} file=${file%/environ}
		[ "$file" = $$ ] || in_keepers "$file" || kill -KILL "$file" 2>/dev/null
	done
	for host in h1 h2; do
		[ ! -e "$HOSTS/$host" ] || timeout 10 $(enter_host $host) umount -l "$fs" 2>/dev/null
	done
	{ hosts_down; wait; } 2>/dev/null
	sleep 1
	rm -rf "$work/ceph" "$work/gluster"
}
