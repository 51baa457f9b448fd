# small.sh - for tests of full disks: a small file system below the state directory.
#
#   . "$(dirname "$0")/../e2e/lib.sh"
#   . "$(dirname "$0")/small.sh"
#   mount … "$small"
#   start_on_small               # COVE_STATE is there; a keeper with keeper_args
#   fill                         # to its last byte; `rm -f "$small"/filler*` makes room
#   leave_small
#
# Sourced, not run.
# shellcheck shell=bash disable=SC2154

small=$tmp/small
mkdir "$small"

# lib.sh's clean_up ends the shell it runs in; the mount goes after it.
clean_all() {
    local rc=$?
    trap - EXIT
    find "$small" -maxdepth 1 -name 'filler*' -delete 2>/dev/null
    ( (exit $rc); KEEP_TMP=1 clean_up )
    rc=$?
    within 5 umount "$small" || umount -l "$small" 2>/dev/null
    rm -rf --one-file-system "$tmp"
    exit $rc
}
trap clean_all EXIT

start_on_small() {
    local up
    export COVE_STATE=$small/state
    mkdir -m 0700 "$COVE_STATE"
    cove up --no-server >"$tmp/up.log" 2>&1 </dev/null &
    up=$!
    within 30 cove ps -q || not_ok "cove up starts on a small disk" "$(tail -n 3 "$tmp/up.log")"
    kill "$up" && wait "$up"
    launch_keeper
}

leave_small() {
    cove kill --all >/dev/null 2>&1
    stop_keeper TERM
    within 5 no_leftovers
    within 5 umount "$small" || not_ok "the small disk can be unmounted" "$(fuser -vm "$small" 2>&1)"
}

fill() { head -c 200m /dev/zero 2>/dev/null >"$small/filler"; head -c 1m /dev/zero 2>/dev/null >>"$small/filler2"; }
