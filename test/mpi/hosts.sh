# SPDX-License-Identifier: BSD-3-Clause
# Several hosts on one machine: namespaces, so that each has its host name, its process ids, its mounts and its network, and a
# switch that connects them. They share a kernel: unless each has a mount of its own of a file system of several hosts (test/cluster), what
# several kernels would see late is not found here. Sourced after jobs.sh.

export HOSTS=$work/hosts PYTHONDONTWRITEBYTECODE=1
keepers=()

# Why there can be no hosts here, or nothing.
hosts_missing() {
	local tool
	for tool in unshare nsenter ip; do
		command -v $tool >/dev/null || { echo "no $tool"; return; }
	done
	unshare -m -u -i -n -p -f --mount-proc true 2>/dev/null || { echo "namespaces are not permitted"; return; }
	unshare -n sh -c "ip link add wire type veth peer name port && ip link add bridge type bridge" 2>/dev/null || echo "no veth or bridge devices"
}

# keep NAME UNSHARE_OPTION... COMMAND: namespaces that last as long as this shell; $HOSTS/NAME gets the id of their first process. The
# command sets them up.
keep() {
	local name=$1
	shift
	unshare "${@:1:$#-1}" -f --kill-child sh -c "${*: -1} && touch '$HOSTS/$name.up' && while :; do sleep 1000; done" </dev/null &
	keepers+=($!)
	until [ -e "$HOSTS/$name.up" ]; do
		kill -0 $! || return 1
		sleep 0.05
	done
	tr -d ' ' <"/proc/$!/task/$!/children" >"$HOSTS/$name"
}

# hosts_up NAME...: each gets the network device "wire", and an address in the order of the names.
hosts_up() {
	local host nr=0
	mkdir -p "$HOSTS"
	keep switch -n "ip link add bridge type bridge && ip link set bridge up"
	for host; do
		nr=$((nr + 1))
		keep "$host" -m -u -i -n -p --mount-proc "hostname $host && ip link set lo up && mount --bind '$work/backend' '$work/backend'"
		host_addr $nr >"$HOSTS/$host.addr"
		ip link add wire netns "$(cat "$HOSTS/$host")" type veth peer name port$nr netns "$(cat "$HOSTS/switch")"
		nsenter -t "$(cat "$HOSTS/switch")" -n ip link set port$nr up master bridge
		in_host "$host" sh -c "ip addr add $(host_addr $nr)/24 dev wire && ip link set wire up"
	done
}

host_addr() {
	echo "192.0.2.$1"
}

hosts_down() {
	[ ${#keepers[@]} = 0 ] || kill -KILL "${keepers[@]}" # unshare ignores the others; what it has started goes with it
	rm -rf "$HOSTS"
	keepers=()
}

# For one job.
need_hosts() {
	trap 'rc=$?; hosts_down 2>/dev/null; exit $rc' EXIT
	hosts_up h1 h2
}

enter_host() {
	echo "nsenter -t $(cat "$HOSTS/$1") -m -u -i -n -p"
}

# in_host HOST COMMAND...
in_host() {
	$(enter_host "$1") "${@:2}"
}

# The dialogue of two_hosts.py.
two_hosts() {
	local dir=$mnt/two plain=$work/plain/two env
	printf -v env '%q ' env "${under_env[@]}"
	need_hosts
	mkdir "$plain"
	under mkdir "$dir"
	/usr/bin/python3 two_hosts.py "$plain" "$(enter_host h1)" "$(enter_host h2)" >"$work/want"
	timeout -k 5 "${LIMIT_S:-180}" /usr/bin/python3 two_hosts.py "$dir" "$(enter_host h1) $env" "$(enter_host h2) $env" >"$work/got"
	sed -i "s|$plain|DIR|" "$work/want"
	sed -i "s|$dir|DIR|" "$work/got"
	diff "$work/want" "$work/got"
	tools_agree "$dir" "$plain"
}

# host_histories OPTION...: all short histories of two hosts (two_hosts_histories.py), or some. In a case of test/cluster the plain directory
# of the same file system is beside: what differs there too is not the library's.
host_histories() {
	local dir=$mnt/histories plain=$work/plain/histories others
	need_hosts
	mkdir -p "$plain"
	under mkdir -p "$dir"
	others=("mapped=$dir")
	if [ -n "$fs" ]; then
		in_host h1 mkdir -p "$fs/plain/histories"
		others+=("plain=$fs/plain/histories")
	fi
	timeout -k 5 "${LIMIT_S:-180}" python3 two_hosts_histories.py "$@" "$plain" "${others[@]}" \
		-- $(enter_host h1) env "${under_env[@]}" -- $(enter_host h2) env "${under_env[@]}"
	under rmdir "$dir"
}

# on_hosts COMMAND...: one of the other jobs, with Open MPI's ranks on both hosts, or on those of hosts_of_job, as h2:4. Its mpirun is
# on neither, but on their network.
# (The MPICH of Debian 12 often does not end when its ranks are on several hosts.)
on_hosts() {
	need_hosts
	launch() {
		local stack=$1 ranks=$2
		shift 2
		run_launcher nsenter -t "$(cat "$HOSTS/h1")" -n mpirun.openmpi --mca plm_rsh_agent "$PWD/nsrsh" \
			--mca oob_tcp_if_include wire --mca btl_tcp_if_include wire --mca io "${stack/romio/$romio}" \
			--map-by node -H "${hosts_of_job:-h1:$ranks,h2:$ranks}" $(mpi_env -x =) -n "$ranks" "$@"
	}
	"$@"
}
