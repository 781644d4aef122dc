# SPDX-License-Identifier: BSD-3-Clause
# What the prolog and the epilog share; sourced by both, with $limit, in seconds. Site settings are in
# /etc/plfs/slurm.conf, a file of the shell:
#
#   PLFS=/opt/plfs/bin/plfs
#   PLFS_NEAR='/dev/shm /tmp /lscratch/%j'     where logs may be: %j is the job's number, %u the user's name
#   PLFS_LIMIT=60                              seconds; less than Slurm's PrologEpilogTimeout

# shellcheck source=/dev/null
[ ! -r "${PLFS_SLURM_CONF:-/etc/plfs/slurm.conf}" ] || . "${PLFS_SLURM_CONF:-/etc/plfs/slurm.conf}"
PLFS=${PLFS:-plfs}
PLFS_NEAR=${PLFS_NEAR:-/dev/shm /tmp /var/tmp}
limit=${PLFS_LIMIT:-$limit}

# The directories in which that user has something, in $found.
find_near() { # UID
	local dir
	found=()
	for dir in $PLFS_NEAR; do
		dir=${dir//%j/${SLURM_JOB_ID:-}}
		dir=${dir//%u/${SLURM_JOB_USER:-}}
		[ ! -d "$dir/plfs.$1" ] || found+=("$dir")
	done
}

# A command with the rights of the job's user, who has those of the backend: root may have none there.
as_user() {
	local uid=${SLURM_JOB_UID:?} gid=${SLURM_JOB_GID:-}
	if [ "$(id -u)" = "$uid" ]; then
		timeout -k 5 "$limit" "$@"
		return
	fi
	[ -n "$gid" ] || gid=$(id -g "${SLURM_JOB_USER:-$uid}" 2>/dev/null) || gid=$uid
	local groups=--init-groups
	id "$uid" >/dev/null 2>&1 || groups=--clear-groups
	timeout -k 5 "$limit" setpriv --reuid="$uid" --regid="$gid" "$groups" -- "$@"
}

say() { logger -t plfs "job ${SLURM_JOB_ID:-?} on $(hostname): $*" 2>/dev/null || echo "plfs: $*" >&2; }
