#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# For Epilog= in slurm.conf: on each node, after a job has ended, move what it has left there to its backend. Slurm runs
# it as root. It ends in PLFS_LIMIT seconds (60), and with 0 in any case: a node whose epilog fails is drained by Slurm.
#
# With job_container/tmpfs the job's /tmp and /dev/shm have gone by now: its last step has to do this then, as in
# checkpoint.sbatch.

limit=60
. "$(dirname "$(readlink -f "$0")")/plfs-common.sh" || exit 0
[ -n "$SLURM_JOB_UID" ] || exit 0
find_near "$SLURM_JOB_UID"
[ ${#found[@]} -gt 0 ] || exit 0

said=$(as_user "$PLFS" drain -q "${found[@]}" 2>&1)
rc=$?
case $rc in
0) ;;
75) say "some logs could not be moved yet, the next epilog tries again: ${said##*$'\n'}" ;;
124 | 137) say "$limit seconds were not enough, the next epilog goes on" ;;
*) say "plfs drain: exit status $rc: ${said##*$'\n'}" ;;
esac

# What near=auto has chosen goes with the job.
as_user rm -f "/dev/shm/plfs.$SLURM_JOB_UID"/auto.*."$SLURM_JOB_ID" 2>/dev/null
exit 0
