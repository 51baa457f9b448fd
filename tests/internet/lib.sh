# internet/lib.sh - for tests that need an internet: two network namespaces, one for cove and one for the rest of the world.
# Sourced after e2e/lib.sh. internet_start, then `outside CMD` runs something where cove runs; internet_stop at the end.
# shellcheck shell=bash
internet_in=cove-in-$$
internet_host=cove-host-$$
internet_dir=$tmp/internet
internet_pid=
export INTERNET=$internet_dir # for Python programs, which run outside (run_python)
python_prefix=(outside)

outside() { nsenter --net="/run/netns/$internet_host" -- "$@"; }

internet_stop() {
    [ -n "$internet_pid" ] && kill "$internet_pid" 2>/dev/null && wait "$internet_pid" 2>/dev/null
    ip netns del "$internet_in" 2>/dev/null
    ip netns del "$internet_host" 2>/dev/null
}

internet_start() {
    mkdir -p "$internet_dir"
    ip netns add "$internet_in" && ip netns add "$internet_host" || return 1
    ip link add coveA netns "$internet_host" type veth peer name coveB netns "$internet_in" || return 1
    ip -n "$internet_host" link set lo up
    ip -n "$internet_in" link set lo up
    ip -n "$internet_host" addr add 93.184.216.1/24 dev coveA
    ip -n "$internet_host" addr add 2606:2800:220::1/64 dev coveA nodad
    ip -n "$internet_host" link set coveA up
    for address in 93.184.216.34/24 93.184.216.35/24 93.184.216.53/24 10.9.9.9/32 169.254.169.254/32; do
        ip -n "$internet_in" addr add $address dev coveB
    done
    ip -n "$internet_in" addr add 2606:2800:220::34/64 dev coveB nodad
    ip -n "$internet_in" link set coveB up
    ip -n "$internet_host" route add default via 93.184.216.34
    ip -n "$internet_host" -6 route add default via 2606:2800:220::34
    nsenter --net="/run/netns/$internet_in" -- python3 tests/internet/internet.py "$internet_dir" 2>"$internet_dir/log" &
    internet_pid=$!
    within 15 test -e "$internet_dir/ready"
}
