# images.sh - for tests of saved sandboxes, after lib.sh: requests to the keeper, and a sandbox whose state can be
# compared. Sourced, not run.
# shellcheck shell=bash

ask() { "$BUILD/helpers/image_ask" "$@"; }
new_id() { ask new-id; }

has_criu() { [ -x /usr/local/lib/cove/criu/usr/sbin/criu ] || [ -x /usr/sbin/criu ]; }

needs_criu() {
    has_criu && return
    skip "$(basename "$0")" "there is no criu"
    exit 77
}

# A sandbox with a process that counts in its memory, and writes the count into a file, when asked to.
make_box() { # flags of cove create…
    local id
    id=$(cove create "$@") || return
    timeout 20 "$BUILD/direct/cove" exec -i "$id" -- sh -c 'cat >/tmp/counter' <<'COUNTER'
n=0
count() { n=$((n + 1)); echo "$n" >/tmp/said.new; mv /tmp/said.new /tmp/said; }
trap count USR1
sleep 100000 &
echo $$ >/tmp/counter.pid
while :; do wait $!; done
COUNTER
    timeout 20 "$BUILD/direct/cove" exec "$id" -- sh -c 'setsid sh /tmp/counter >/dev/null 2>&1 </dev/null &
        until [ -s /tmp/counter.pid ]; do sleep 0.01; done'
    echo "$id"
}

# What it counts to next; the file has what it counted last, so a file that is older than the memory is found, too.
probe() { # sandbox
    timeout 20 "$BUILD/direct/cove" exec "$1" -- sh -c '
        was=$(cat /tmp/said 2>/dev/null || echo 0)
        rm -f /tmp/said
        kill -USR1 "$(cat /tmp/counter.pid)" || exit 1
        i=0
        until [ -s /tmp/said ]; do i=$((i + 1)); [ $i -gt 500 ] && echo silent && exit 1; sleep 0.01; done
        now=$(cat /tmp/said)
        [ "$now" = $((was + 1)) ] && echo "$now" || echo "memory $now, file $was"' 2>&1
}

# Runs a request, and returns when its criu has begun, which is held still: its number in $held, the request's in $asking.
hold_criu() { # arguments of ask…
    local watch from
    rm -f "$tmp/held"
    mkfifo "$tmp/held"
    "$BUILD/helpers/hold_exec" "$keeper_pid" >"$tmp/held" &
    watch=$! held=
    exec {from}<"$tmp/held"
    read -r -t 60 <&"$from"
    ask "$@" >/dev/null &
    asking=$!
    read -r -t 60 held <&"$from"
    wait "$watch"
    exec {from}<&-
}

drop_all() {
    local image
    for image in $(ask list) $(ls "$COVE_STATE/images" 2>/dev/null); do ask drop "$image" >/dev/null; done
}

# Images in whatever state, and disks, once a keeper has come and gone.
files_left() {
    restart_keeper TERM
    stop_keeper TERM
    within 60 test ! -e "$COVE_STATE/images/.spent" # removed by a process that continues by itself
    ls -A "$COVE_STATE/images"
    find "$COVE_STATE/disks" -name 'd????????????????' -printf 'disk %f\n'
}
