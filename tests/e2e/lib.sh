# lib.sh - for end-to-end tests: a keeper of their own, ok/not ok lines, nothing left behind.
#
#   #!/usr/bin/env bash
#   . "$(dirname "$0")/lib.sh"
#   start_keeper                                  # its own state directory, exported as COVE_STATE
#   is "a command's output arrives" "hi" "$(cove run -- echo hi)"
#   rc_is "an unknown template is refused" 80 cove run --template nope -- true
#   holds "a file is there" test -e "$tmp/file"
#   finish
#
# On exit, also a failing one, the trap destroys the keeper's sandboxes, ends the keeper by its pid
# and checks that nothing is left: processes, cgroups, mounts, loop devices, directories.
# Sourced, not run. Needs root. BUILD names the build directory.
# shellcheck shell=bash

set -u
lib_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$lib_root" || exit 1
BUILD=$(realpath "${BUILD:-build}")
export BUILD
export PATH="$BUILD/direct:$BUILD:$PATH" # the direct command line (tests/direct): most tests have a keeper, and no server
unset COVE_STATE
export COVE_LOCKDOWN=report # a call that our own programs are refused is told in their log, and a failure: see clean_up
export COVE_POOL=off # what is made ahead would be in the way of those who count
# What isolates the sandboxes of a test that names no isolation (tests/columns): COVE_ISOLATION is the server's setting, and
# COVE_TEST_ISOLATION what the direct command line looks at. SLOW multiplies the time that tests wait at most.
isolation=${COVE_TEST_ISOLATION:-jail}
slower=${SLOW:-1}
[ "$isolation" = jail ] || export COVE_ISOLATION=$isolation

tmp=$(mktemp -d /tmp/cove-test.XXXXXX)
failures=0
keeper_pid=
keeper_args=()
keeper_log=$tmp/keeper.log
: >"$keeper_log"

ok() { echo "ok - $1"; }
not_ok() { # sentence, why
    echo "not ok - $1${2:+: $2}" | tr '\n' ' '
    echo
    failures=$((failures + 1))
}
skip() { echo "skip - $1: $2"; }
# Whether what follows holds for the isolation of this run. Where it does not, the line says so.
only() { # isolations, what, reason
    [[ " $1 " == *" ${isolation%-emulated} "* ]] && return
    skip "$2" "only ${1// / and }: $3"
    return 1
}
# Whether this host has something, as 'cove doctor' says by that id. Where it has, what does not work is a failure, no reason to skip.
host_has() { # criu, gvisor, vm …
    cove doctor --json 2>/dev/null | python3 -c 'import json, sys
sys.exit(not any(c["id"] == sys.argv[1] and c["status"] == "ok" for c in json.load(sys.stdin)["checks"]))' "$1"
}
# Whether sandboxes of this run can be saved, and else why not, in $no_save. gVisor and a virtual machine need no criu.
no_save="no criu that works here"
export COVE_TEST_NO_SAVE=$no_save
can_save() { [ "$isolation" != jail ] || host_has criu; }

# One line, cut: for "why".
brief() { printf '%s' "$1" | head -c 300 | tr '\n\r' '  '; }

is() { # sentence, wanted, got
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$(brief "$3")', not '$(brief "$2")'"; fi
}

like() { # sentence, extended regular expression, got
    if printf '%s' "$3" | grep -Eqz -- "$2"; then ok "$1"; else not_ok "$1" "'$(brief "$3")' is not like '$2'"; fi
}

holds() { # sentence, command…: succeeds
    local sentence=$1 out
    shift
    if out=$("$@" 2>&1); then ok "$sentence"; else not_ok "$sentence" "$* ended with $?: $(brief "$out")"; fi
}

fails() { # sentence, command…: does not succeed
    local sentence=$1 out
    shift
    if out=$("$@" 2>&1); then not_ok "$sentence" "$* succeeded: $(brief "$out")"; else ok "$sentence"; fi
}

rc_is() { # sentence, exit code, command…; its stderr is left in $said, its stdout in $out
    local sentence=$1 want=$2 got
    shift 2
    "$@" >"$tmp/rc.out" 2>"$tmp/rc.err" </dev/null
    got=$?
    out=$(tr -d '\0' <"$tmp/rc.out") said=$(tr -d '\0' <"$tmp/rc.err")
    if [ "$got" = "$want" ]; then ok "$sentence"
    else not_ok "$sentence" "exit $got, not $want: $(brief "$said")"; fi
}

# Waits until a command succeeds, at most N seconds, or rather half a minute: what must come is waited for also on a
# machine that is slow, or busy with something else.
within() { # seconds, command…
    local end=$((SECONDS + ($1 > 30 ? $1 : 30) * slower))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -ge $end ] && return 1
        sleep 0.05
    done
}

alive() { kill -0 "$1" 2>/dev/null; }
dead() { ! alive "$1"; }

# The address of a server whose port was left to the kernel, once it listens.
address() { # its log
    within 20 grep -aq 'ready listen=' "$1" && grep -aoE 'ready listen=[0-9.]+:[0-9]+' "$1" | tail -n 1 | cut -d= -f2
}

# The keeper as its own process, so that tests can kill it by $keeper_pid.
# keeper_prefix: a command that ends in exec'ing the keeper, for tests that change its surroundings.
keeper_prefix=()
column_args=()
[ "$isolation" != vm-emulated ] || column_args=(--allow-vm-emulated)
launch_keeper() {
    "${keeper_prefix[@]}" "$BUILD/cove-keeper" --state "$COVE_STATE" "${column_args[@]}" "${keeper_args[@]}" >>"$keeper_log" 2>&1 </dev/null &
    keeper_pid=$!
    if ! within 20 "$BUILD/direct/cove" ps -q; then
        not_ok "the keeper starts" "$(tail -n 3 "$keeper_log")"
        exit 1
    fi
}

start_keeper() { # flags for cove-keeper…
    local up
    if [ "$(id -u)" != 0 ]; then skip "$(basename "$0")" "needs root"; exit 77; fi
    [ -x "$BUILD/cove-keeper" ] || { not_ok "cove-keeper is built" "$BUILD"; exit 1; }
    export COVE_STATE=$tmp/state
    mkdir -m 0700 "$COVE_STATE"
    keeper_args=("$@")
    # `cove up` makes the host template; the keeper itself is then started without it.
    "$BUILD/direct/cove" up --no-server --state "$COVE_STATE" >"$tmp/up.log" 2>&1 </dev/null &
    up=$!
    if ! within 30 "$BUILD/direct/cove" ps -q; then
        not_ok "cove up starts" "$(tail -n 3 "$tmp/up.log")"
        kill "$up" 2>/dev/null
        exit 1
    fi
    kill "$up" && wait "$up"
    if [[ $isolation == vm* ]] && ! tests/columns/image "$COVE_STATE" >>"$tmp/up.log" 2>&1; then
        not_ok "the host's programs become an image" "$(tail -n 3 "$tmp/up.log")"
        exit 1
    fi
    launch_keeper
}

# A template that 'make test-templates' has built: a copy, since the keeper takes only what is below its own state.
take_template() { # name
    mkdir -p "$COVE_STATE/templates" && cp -a --reflink=auto "$COVE_BASE_STATE/templates/$1" "$COVE_STATE/templates/"
}

# Runs a Python program that uses tests/lib/harness.py: its lines count, and an end without its own end is a failure. Variables before the call
# are its environment. python_prefix: a command to run the program with, such as `outside`.
python=python3
python_prefix=()
coved_log=$tmp/coved.log
run_python() { # program, arguments…
    local rc
    COVED=$BUILD/coved STATE=${COVE_STATE:-} LOG=$coved_log PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$lib_root/tests/lib${PYTHONPATH:+:$PYTHONPATH} \
        "${python_prefix[@]}" timeout $((${python_timeout:-900} * slower)) $python "$@"
    rc=$?
    [ $rc -ne 77 ] || exit 77
    [ $rc -le 1 ] || not_ok "$1 comes to its end" "exit $rc"
    [ $rc -eq 0 ] || failures=$((failures + 1))
    return $rc
}

# A server for the keeper's state, and the product's own command line from then on. More than one call starts it again.
serve_pid=
serve_start() { # flags for coved…
    "$BUILD/coved" --state "$COVE_STATE" --listen 127.0.0.1:0 "$@" >>"$tmp/coved.log" 2>&1 </dev/null &
    serve_pid=$!
    export PATH="$BUILD:$PATH"
    hash -r
    if ! within 20 "$BUILD/cove" ps -q; then
        not_ok "the server starts" "$(tail -n 3 "$tmp/coved.log")"
        exit 1
    fi
}

serve_stop() { # signal (default TERM)
    [ -n "$serve_pid" ] || return 0
    kill -"${1:-TERM}" "$serve_pid" 2>/dev/null
    wait "$serve_pid" 2>/dev/null
    serve_pid=
}

# A command beside a server that runs as long as the command does; the direct command line stays the one in use.
with_server() { # command…
    local path=$PATH rc
    serve_start
    export PATH=$path
    hash -r
    "$@"
    rc=$?
    serve_stop
    return $rc
}

stop_keeper() { # signal (default TERM)
    [ -n "$keeper_pid" ] || return 0
    kill -"${1:-TERM}" "$keeper_pid" 2>/dev/null
    wait "$keeper_pid" 2>/dev/null
    keeper_pid=
}

restart_keeper() { # signal (default KILL)
    stop_keeper "${1:-KILL}"
    launch_keeper
}

# The name of a sandbox's cgroups, by its id.
cgroup_of() { # id
    grep -aoE "(running|taken) sandbox=$1 .* cgroup=[^ ]*" "$keeper_log" | tail -n 1 | sed 's/.*cgroup=//'
}

# Every sandbox id that this keeper ever logged or has a directory for.
keeper_ids() {
    { grep -aoE '\bi[a-z0-9]{20}\b' "$keeper_log"
      ls "$COVE_STATE/sandboxes" 2>/dev/null; } | sort -u
}

# What is left of this state in the kernel and on disk, one line each; nothing when all is clean.
leftovers() {
    local ids
    ids=$(keeper_ids)
    grep -F "$COVE_STATE" /proc/self/mountinfo | awk '{ print "mount " $5 }'
    losetup -a 2>/dev/null | grep -F "$COVE_STATE" | sed 's/^/loop device /'
    ls -A "$COVE_STATE/sandboxes" 2>/dev/null | sed 's/^/directory /'
    if [ -n "$ids" ]; then
        find /sys/fs/cgroup -type d -name '*i????????????????????*' 2>/dev/null |
            grep -F "$ids" | sed 's/^/cgroup /'
    fi
    for pid in "${pids_seen[@]}"; do
        # Another process of the same number has another map; a zombie waits for the host's init.
        [ "$(cat "/proc/$pid/uid_map" 2>/dev/null)" = "${maps_seen[$pid]}" ] || continue
        grep -qs '^State:\s*Z' "/proc/$pid/status" && continue
        [ -d "/proc/$pid" ] && echo "process $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    done
    return 0
}

no_leftovers() { [ -z "$(leftovers)" ]; }

# The cgroups of keepers whose state directory is one of this test's. The keeper names them by the number of that
# directory, so tests that run at the same time are told apart; once all keepers have ended, there is none.
keeper_cgroups() {
    find /sys/fs/cgroup -maxdepth 3 -type d -name 'cove-*' 2>/dev/null |
        grep -f <(find "$tmp" -maxdepth 3 -type d -printf '%D %i\n' | xargs -r printf '/cove-%x-%x$\n') | sed 's/^/cgroup /'
}
no_keeper_cgroups() { [ -z "$(keeper_cgroups)" ]; }

pids_seen=()
declare -A maps_seen=()
remember_pids() {
    local pid
    while read -r pid; do
        [ -n "$pid" ] || continue
        pids_seen+=("$pid")
        maps_seen[$pid]=$(cat "/proc/$pid/uid_map" 2>/dev/null)
    done < <("$BUILD/direct/cove" ps --json 2>/dev/null | grep -oE '"pid": ?[0-9]+' | grep -oE '[0-9]+')
}

# What a test has to undo itself, before the sandboxes go; the last one first.
exits=()
at_exit() { exits=("$1" "${exits[@]}"); } # command

clean_up() {
    local rc=$? left command
    trap - EXIT
    for command in "${exits[@]}"; do eval "$command"; done
    if [ $rc -ne 77 ] && [ -z "$finished" ]; then not_ok "$(basename "$0") comes to its end" "exit $rc"; fi
    serve_stop
    for job in $(jobs -p); do [ "$job" = "$keeper_pid" ] || kill -KILL "$job" 2>/dev/null; done
    if [ -n "${COVE_STATE:-}" ] && [ -d "$COVE_STATE" ]; then
        if [ -z "$keeper_pid" ] || dead "$keeper_pid"; then launch_keeper; fi
        remember_pids
        timeout $((60 * slower)) "$BUILD/direct/cove" kill --all >/dev/null 2>>"$keeper_log"
        left=$("$BUILD/direct/cove" ps -q 2>&1)
        stop_keeper TERM
        within 5 no_leftovers
        left+=$(leftovers)
        if [ -z "$left" ]; then ok "nothing is left behind ($(basename "$0"))"
        else not_ok "nothing is left behind ($(basename "$0"))" "$left"; fi
    fi
    within 5 no_keeper_cgroups || not_ok "no cgroup of a keeper is left ($(basename "$0"))" "$(keeper_cgroups)"
    left=$(find "$tmp" -maxdepth 2 -name '*.log' -exec grep -ah 'lockdown refused' {} + 2>/dev/null | sort | uniq -c)
    [ -z "$left" ] || not_ok "no program is refused a system call ($(basename "$0"))" "$left"
    if [ $failures -gt 0 ] || [ $rc -ne 0 ] && [ $rc -ne 77 ]; then
        tail -n 20 "$keeper_log" | sed 's/^/# keeper: /'
    fi
    [ -n "${KEEP_TMP:-}" ] || rm -rf --one-file-system "$tmp"
    if [ $failures -gt 0 ]; then exit 1; fi
    exit $rc
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# The last command of each test: without it, a test has ended in its middle.
finished=
finish() {
    finished=1
    exit $((failures > 0))
}
