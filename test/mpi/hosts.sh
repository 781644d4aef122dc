# SPDX-License-Identifier: BSD-3-Clause
# Two hosts on one machine, h1 and h2: namespaces, so that each has its host name, its process ids, its mounts and its
# network, with a wire between the two. They share a kernel, hence its page cache: what several kernels would see late is not
# found here. Sourced after jobs.sh.

export HOSTS=$work/hosts
keepers=()

# Why there can be no hosts here, or nothing.
hosts_missing() {
	local tool
	for tool in unshare nsenter ip; do
		command -v $tool >/dev/null || { echo "no $tool"; return; }
	done
	unshare -m -u -i -n -p -f --mount-proc true 2>/dev/null || { echo "namespaces are not permitted"; return; }
	unshare -n ip link add w type veth peer name w2 2>/dev/null || echo "no veth devices"
}

# Each host's first process sleeps until the job's shell ends.
hosts_up() {
	local host other pids=()
	mkdir -p "$HOSTS"
	trap 'rc=$?; hosts_down 2>/dev/null; exit $rc' EXIT
	for host in h1 h2; do
		unshare -m -u -i -n -p -f --mount-proc --kill-child sh -c "
			hostname $host && ip link set lo up && mount --bind '$work/backend' '$work/backend' &&
			touch '$HOSTS/$host.up' && exec sleep 1000" &
		keepers+=($!)
		until [ -e "$HOSTS/$host.up" ]; do
			kill -0 $! || return 1
			sleep 0.05
		done
		pids+=("$(tr -d ' ' <"/proc/$!/task/$!/children")")
		echo "${pids[-1]}" >"$HOSTS/$host"
	done
	ip link add wire netns "${pids[0]}" type veth peer name wire netns "${pids[1]}"
	./nsrsh h1 "ip addr add 192.0.2.1/24 dev wire && ip link set wire up"
	./nsrsh h2 "ip addr add 192.0.2.2/24 dev wire && ip link set wire up"
}

hosts_down() {
	kill -KILL "${keepers[@]}" # unshare ignores the others; what it has started goes with it
	rm -rf "$HOSTS"
	keepers=()
}

enter_host() {
	echo "nsenter -t $(cat "$HOSTS/$1") -m -u -i -n -p"
}

# The dialogue of two_hosts.py.
two_hosts() {
	local dir=$mnt/two plain=$work/plain/two env
	printf -v env '%q ' env "${under_env[@]}"
	hosts_up
	mkdir "$plain"
	under mkdir "$dir"
	/usr/bin/python3 two_hosts.py "$plain" "$(enter_host h1)" "$(enter_host h2)" >"$work/want"
	/usr/bin/python3 two_hosts.py "$dir" "$(enter_host h1) $env" "$(enter_host h2) $env" >"$work/got"
	sed -i "s|$plain|DIR|" "$work/want"
	sed -i "s|$dir|DIR|" "$work/got"
	diff "$work/want" "$work/got"
	tools_agree "$dir" "$plain"
}

# on_hosts COMMAND...: one of the other jobs, with Open MPI's ranks on both hosts. Its mpirun is on neither, but on their network.
# (The MPICH of Debian 12 often does not end when its ranks are on several hosts.)
on_hosts() {
	hosts_up
	launch() {
		local stack=$1 ranks=$2
		shift 2
		timeout -k 5 "${LIMIT_S:-180}" nsenter -t "$(cat "$HOSTS/h1")" -n mpirun.openmpi --mca plm_rsh_agent "$PWD/nsrsh" \
			--mca oob_tcp_if_include wire --mca btl_tcp_if_include wire --mca io "${stack/romio/romio321}" \
			--map-by node -H "h1:$ranks,h2:$ranks" $(mpi_env -x =) -n "$ranks" "$@"
	}
	"$@"
}
