#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# For Prolog= in slurm.conf: on each node, before a job begins, move what an earlier job of the same user has left, as after
# a restart of the node, and remove what no file has any more. Slurm runs it as root. It ends in PLFS_LIMIT seconds (10),
# and with 0 in any case. A site does without it: any later job reads what is near on its node.

limit=10
. "$(dirname "$(readlink -f "$0")")/plfs-common.sh" || exit 0
[ -n "$SLURM_JOB_UID" ] || exit 0
find_near "$SLURM_JOB_UID"
[ ${#found[@]} -gt 0 ] || exit 0
as_user "$PLFS" drain -q "${found[@]}" >/dev/null 2>&1
case $? in
0 | 75 | 124 | 137) ;;
*) say "plfs drain before the job failed: run it on this node" ;;
esac
exit 0
