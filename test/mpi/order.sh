# SPDX-License-Identifier: BSD-3-Clause
# Ranks of one host that overwrite each other's bytes, with a barrier or a message between two writes, see order.c.
# Each rank reads what all have written, and so does at the end a process that has not been of the job. Sourced
# after jobs.sh.

# order STACK HOW RANKS SEED ROUNDS [CASE]
order() {
	local stack=$1 how=$2 ranks=$3 seed=$4 rounds=$5 prg=$bin/$(stack_dir "$1")/order dir=$mnt/order log=$work/log/order
	local LIMIT_S=${LIMIT_S:-$((180 + rounds / 5))}
	shift 5
	echo "order $stack $how, $ranks ranks, seed $seed, $rounds rounds"
	under mkdir "$dir"
	if ! launch "$stack" "$ranks" "$prg" "$how" "$dir" "$seed" "$rounds" "$@" >"$log" 2>&1; then
		grep -v ': ok, ' "$log" | head -n 12 # what comes first tells most
		return 1
	fi
	cat "$log"
	under "$prg" check "$dir" "$seed" "$rounds" "$ranks" "$@"
	under sh -c "rm $dir/* && rmdir $dir"
	nothing_left
}

# order_sizes STACK HOW SEED RANKS...: the more ranks, the fewer rounds.
order_sizes() {
	local ranks
	for ranks in "${@:4}"; do
		order "$1" "$2" "$ranks" $(($3 + ranks)) $((${SCALE:-1} * 300 / ranks))
	done
}

# As mapped when nothing else is said: small files lie in their stubs until a second rank writes.
order_small() { # SEED
	[ "$PLAIN" = yes ] || under_env[1]=PLFS_MAP=/plfs=$work/backend
	order ompio posix 4 "$1" 100
}

# order_long STACK HOW RANKS SEED SECONDS: the random model alone, job after job.
order_long() {
	local seed=$4 end=$((SECONDS + $5))
	while [ $SECONDS -lt $end ]; do
		order "$1" "$2" "$3" $((seed++)) 2000 random
	done
}
