# SPDX-License-Identifier: BSD-3-Clause
# What places, several backends, copies and parity cost a rank whose mapping has none of them, sourced by run: no system call.

# Ranks write a file one after the other, sync, read and close it, and a copy of it gets another name.
unused_calls() {
	local no
	for no in 0 1 2 3; do
		strace -f -o "$work/calls.$no" "$plfs" run -m "$map" "$bin/writer" /plfs/n $no 4 50 1000 close
	done
	strace -f -o "$work/calls.4" "$plfs" run -m "$map" sh -c 'cp /plfs/n /plfs/n2 && sync /plfs/n2 && mv /plfs/n2 /plfs/n3 && cmp /plfs/n /plfs/n3 && rm /plfs/n3'
	[ "$(grep -c 'data[.]' "$work/calls.0")" -ge 1 ]
	[ "$(find "$back" -name 'data.*' | wc -l)" -ge 4 ]
	! grep -hE '"[^"]*/?(near|spread|copies|parity|queue|removed|drains|auto)[.][^"]*"|plfs[.][0-9]+/|"(/dev/shm|/proc/mounts|/proc/self/mountinfo|/sys/fs/cgroup|/proc/self/cgroup)' "$work"/calls.* || return 1
	# no process, and no thread
	! grep -hE ' (clone|clone3|vfork|fork)\(' "$work"/calls.[0-3] || return 1
	[ "$(grep -ch ' execve(' "$work/calls.0")" -le 2 ] # plfs run, and the rank
	[ -z "$(find "$back/.plfs" -name 'near.*' -o -name 'spread.*' -o -name 'parity*' -o -name 'queue.*' -o -name 'copies*')" ]
}
