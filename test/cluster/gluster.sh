# SPDX-License-Identifier: BSD-3-Clause
# GlusterFS on the hosts s1 s2 s3, one volume, mounted on h1 and h2 at $fs. Sourced after ../mpi/hosts.sh; state is below
# $work/gluster.
#
# By itself it lets a host go on for a second with what it knew of a file, keeps back what was written, and answers reads from what it
# read before, so that not even two plain programs see each other's bytes after a lock or an fsync. All of that is switched off here,
# as is advised for programs that share files. What stays: two plain programs that count under a lock lose most
# counts, probably because a host's kernel does not read again the pages that it has (counted_at_once of two_hosts.py).

gluster_missing() {
	local program
	for program in gluster glusterd glusterfs; do
		command -v $program >/dev/null || { echo "no $program"; return; }
	done
	[ -c /dev/fuse ] || echo "no /dev/fuse"
}

gluster_options="performance.quick-read performance.io-cache performance.stat-prefetch performance.read-ahead
	performance.readdir-ahead performance.write-behind performance.open-behind performance.nl-cache"

on_s1_gluster() {
	in_host s1 timeout 120 gluster --mode=script "$@" </dev/null
}

# gluster_start replica|disperse: three copies, or two data fragments and one of parity.
gluster_start() {
	local server bricks="" nr=0 option
	set -e
	for server in s1 s2 s3; do
		mkdir -p "$work/gluster/$server"/{lib,run,log}
		[ ! -d /var/lib/glusterd ] || cp -a /var/lib/glusterd/. "$work/gluster/$server/lib/"
		rm -f "$work/gluster/$server/lib/glusterd.info"
		in_host $server sh -c "
			mkdir -p /var/lib/glusterd /var/log/glusterfs && mount -t tmpfs none /run && mkdir -p /run/gluster &&
			mount --bind '$work/gluster/$server/lib' /var/lib/glusterd &&
			mount --bind '$work/gluster/$server/log' /var/log/glusterfs && glusterd -p /run/gluster/glusterd.pid"
		bricks="$bricks $(cat "$HOSTS/$server.addr"):$work/gluster/$server/brick"
	done
	until_says UUID on_s1_gluster pool list
	for server in s2 s3; do
		on_s1_gluster peer probe "$(cat "$HOSTS/$server.addr")"
		nr=$((nr + 1))
		until_says "^$nr\$" sh -c "$(enter_host s1) gluster --mode=script peer status | grep -c 'Peer in Cluster (Connected)'"
	done
	case $1 in
	replica) on_s1_gluster volume create vol replica 3 $bricks force ;;
	disperse) on_s1_gluster volume create vol disperse 3 redundancy 1 $bricks force ;;
	esac
	for option in $gluster_options; do
		on_s1_gluster volume set vol $option off
	done
	on_s1_gluster volume start vol
	for server in h1 h2; do
		in_host $server sh -c "mkdir -p /var/log/glusterfs && exec glusterfs --volfile-server=$(cat "$HOSTS/s1.addr") --volfile-id=vol \
			--attribute-timeout=0 --entry-timeout=0 --negative-timeout=0 --fopen-keep-cache=yes -l '$work/gluster/$server.log' '$fs'"
		until_says mountpoint in_host $server mountpoint "$fs"
	done
}
