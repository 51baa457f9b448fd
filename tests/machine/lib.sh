# lib.sh - for tests in a machine of tools/machine: ok lines, the package, the service, sandboxes that hold a word.
#
#   #!/usr/bin/env bash
#   . "$(dirname "$0")/lib.sh"
#   need_package "a reboot"                       # skips the program where there is no such machine
#   holds "the package is installed" dpkg -i "$package"
#   finish
#
# Sourced, not run. The programs are the installed ones: /usr/bin/cove and its server on port 8000.
# shellcheck shell=bash
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
unset COVE_STATE BUILD
failures=0

ok() { echo "ok - $1"; }
not_ok() { echo "not ok - $1: $(printf '%s' "${2:-}" | head -c 400 | tr '\n' ' ')"; failures=$((failures + 1)); }
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$3', not '$2'"; fi; }
like() { if printf '%s' "$3" | grep -Eqz -- "$2"; then ok "$1"; else not_ok "$1" "'$3' is not like '$2'"; fi; }
holds() { local sentence=$1 said; shift; if said=$("$@" 2>&1); then ok "$sentence"; else not_ok "$sentence" "$* ended with $?: $said"; fi; }
# Until a command succeeds. An emulated machine on a busy host is slow, up to a hundred times: what must come is waited for.
within() {
    local end=$((SECONDS + 900))
    until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}
finish() { [ $failures -eq 0 ] || journalctl -u cove -b -o short-monotonic | tail -n 60; exit $((failures > 0)); }

package=$(ls /mnt/cove/cove_*.deb 2>/dev/null | tail -n 1)
need_package() { # what
    [ -d /run/systemd/system ] && [ -n "$package" ] && return
    echo "skip - $1: needs a machine of tools/machine, and a package ('make deb' first)"
    exit 77
}

# ---- the server ----
key= # of a tenant; none: the tenant local
api() { curl -s -X "$1" ${key:+-H "X-API-Key: $key"} -H 'Content-Type: application/json' ${3:+-d "$3"} "http://127.0.0.1:8000$2"; } # method, path, body
field() { python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], ""))' "$1" 2>/dev/null; }
text() { python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$1"; }
run() { api POST "/v1/sandboxes/$1/exec" "{\"command\": $(text "$2")}" | field stdout; } # sandbox, command
state_of() { api GET "/v1/sandboxes/$1" | field state; }
up() { [ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/health)" = 200 ]; }
head_of_audit() { cove audit verify | grep -oE 'head=[0-9a-f]+' | cut -d= -f2; }

# ---- a sandbox with a word in its memory and in a file ----
holder='mkfifo /tmp/in /tmp/out; while :; do read c a </tmp/in; [ "$c" = set ] && T=$a; echo "$T" >/tmp/out; done'
hold() { # word; the id of a new sandbox
    local box
    box=$(api POST /v1/sandboxes '{"timeout": 3600}' | field id)
    api POST "/v1/sandboxes/$box/processes" "{\"command\": $(text "$holder")}" >/dev/null
    run "$box" "until [ -p /tmp/out ]; do sleep 0.1; done; echo set $1 >/tmp/in; cat /tmp/out; echo $1 >/home/user/note" >/dev/null
    echo "$box"
}
held() { run "$1" 'echo get >/tmp/in; cat /tmp/out; cat /home/user/note' | xargs; }
