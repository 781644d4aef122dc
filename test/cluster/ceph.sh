# SPDX-License-Identifier: BSD-3-Clause
# CephFS on the hosts s1 s2 s3, mounted on h1 and h2 at $fs by ceph-fuse: one monitor, manager and metadata server, three storage
# daemons that keep their data in files. No authentication. Sourced after ../mpi/hosts.sh; state is below $work/ceph.

ceph_missing() {
	local program
	for program in ceph ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse monmaptool; do
		command -v $program >/dev/null || { echo "no $program"; return; }
	done
	[ -c /dev/fuse ] || echo "no /dev/fuse"
}

ceph_conf() {
	cat <<-END
	[global]
	fsid = $(cat /proc/sys/kernel/random/uuid)
	mon host = [v2:$1:3300,v1:$1:6789]
	public network = 192.0.2.0/24
	auth cluster required = none
	auth service required = none
	auth client required = none
	auth allow insecure global id reclaim = true
	run dir = $work/ceph
	log file = $work/ceph/log.\$name
	admin socket =
	keyring = $work/ceph/keyring
	mon data = $work/ceph/mon
	mgr data = $work/ceph/mgr
	mds data = $work/ceph/mds
	osd data = $work/ceph/osd.\$id
	bluestore block size = 8589934592
	bluestore fsck on mount = false
	osd memory target = 939524096
	osd crush chooseleaf type = 0
	osd pool default size = 3
	osd pool default pg autoscale mode = off
	mon data avail crit = 1
	mon data avail warn = 2
	mon initial members = a
	mgr initial modules =
	mon mgr initial modules =
	mon osd full ratio = .95
	mds beacon grace = 120
	osd heartbeat grace = 120
	mon osd report timeout = 900
	fuse default permissions = true
	client mount timeout = 60
	END
}

# until_says WORD COMMAND...: wait up to 2 minutes until the command's output has the word.
until_says() {
	local word=$1 tries
	shift
	for ((tries = 0; tries < 400; tries++)); do
		"$@" 2>/dev/null | grep -q -- "$word" && return
		sleep 0.3
	done
	echo "no \"$word\" from: $*" >&2
	return 1
}

on_s1() {
	in_host s1 timeout 60 "$@"
}

# ceph_start ec|replicated: how the data pool keeps its objects; ec: two data chunks and one of parity.
ceph_start() {
	local conf=$work/ceph/ceph.conf nr=0 server
	export CEPH_CONF=$conf
	mkdir -p "$work/ceph/mgr" "$work/ceph/mds"
	ceph_conf "$(cat "$HOSTS/s1.addr")" >"$conf"
	: >"$work/ceph/keyring"
	set -e
	monmaptool --create --fsid "$(awk '/^fsid/ { print $3 }' "$conf")" --addv a \
		"$(sed -n 's/^mon host = //p' "$conf")" "$work/ceph/monmap" >/dev/null
	on_s1 ceph-mon --mkfs -i a --monmap "$work/ceph/monmap"
	on_s1 ceph-mon -i a
	until_says quorum on_s1 ceph -s
	on_s1 ceph-mgr -i x
	for server in s1 s2 s3; do
		local uuid
		uuid=$(cat /proc/sys/kernel/random/uuid)
		mkdir -p "$work/ceph/osd.$nr"
		on_s1 ceph osd new "$uuid" $nr
		in_host $server ceph-osd -i $nr --mkfs --osd-uuid "$uuid"
		in_host $server ceph-osd -i $nr
		nr=$((nr + 1))
	done
	until_says "$nr up" on_s1 ceph osd stat
	on_s1 ceph osd pool create meta 8
	if [ "$1" = ec ]; then
		on_s1 ceph osd erasure-code-profile set two-and-one k=2 m=1 crush-failure-domain=osd
		on_s1 ceph osd pool create data 16 16 erasure two-and-one
		on_s1 ceph osd pool set data allow_ec_overwrites true
	else
		on_s1 ceph osd pool create data 16
	fi
	on_s1 ceph fs new cephfs meta data --force
	on_s1 ceph-mds -i a
	until_says up:active on_s1 ceph mds stat
	for server in h1 h2; do
		in_host $server ceph-fuse --id admin "$fs"
		in_host $server mountpoint -q "$fs"
	done
}
