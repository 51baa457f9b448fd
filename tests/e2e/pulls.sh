# pulls.sh - for tests of images that tenants pull: registries on loopback, and a server that 'cove up' started, which allows them.
#
#   . "$(dirname "$0")/lib.sh"
#   . "$(dirname "$0")/pulls.sh"
#   need_pulls                           # or skips
#   registry open                        # docker-registry; its port is in $port
#   start_liar stall                     # tests/e2e/registry.py; the same
#   pulls_up 1h "127.0.0.1:$port"        # 'cove up'; $url is the API's address, $key_one and $key_two are keys of two tenants
#   outcome "$key_one" "$(build "$key_one" '{"name": "x", "image": "…"}')"
#
# Sourced, not run.
# shellcheck shell=bash disable=SC2154

pids=()
up=
bin=$BUILD # where the programs of 'cove up' are

end_all() {
    exec 7>&- # the end of the liar, which 'wait' waits for, too
    kill "${up:-}" "${pids[@]}" 2>/dev/null
    wait 2>/dev/null
}

need_pulls() {
    local tool
    for tool in docker-registry skopeo busybox; do
        command -v $tool >/dev/null || { skip "$(basename "$0")" "$tool is missing"; exit 77; }
    done
    grep -qw erofs /proc/filesystems || modprobe erofs 2>/dev/null || { skip "$(basename "$0")" "no EROFS in this kernel"; exit 77; }
    if [ "$(id -u)" != 0 ]; then skip "$(basename "$0")" "needs root"; exit 77; fi
    at_exit end_all
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
make() { python3 tests/e2e/images_of.py "$@"; }
push() { skopeo copy -q --dest-tls-verify=false "$@"; }

# ---- registries ----
registry() { # name, more of its settings…
    local name=$1
    shift
    port=$(free_port)
    { printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/%s}}\nhttp: {addr: "127.0.0.1:%s"}\n' "$tmp" "$name" "$port"
      printf '%s\n' "$@"; } >"$tmp/$name.yml"
    docker-registry serve "$tmp/$name.yml" >"$tmp/$name.log" 2>&1 &
    pids+=($!)
    within 20 curl -s -o /dev/null "http://127.0.0.1:$port/v2/"
}

locked_registry() { # name: opens for me:secret-9Kz
    printf 'me:%s\n' "$(python3 -W ignore -c 'import crypt; print(crypt.crypt("secret-9Kz", crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)))')" >"$tmp/htpasswd"
    registry "$1" 'auth: {htpasswd: {realm: tests, path: '"$tmp/htpasswd"'}}'
}

start_liar() { # mode: its port is in $port
    exec 7> >(exec python3 tests/e2e/registry.py "$1" "$tmp/asked" >"$tmp/liar")
    : >"$tmp/asked"
    within 20 test -s "$tmp/liar"
    read -r port digest <"$tmp/liar"
    rm -f "$tmp/liar"
}

# ---- a server ----
config() { # the limit of a download, registries that are allowed, more settings…
    printf '%s\n' "registry_timeout = $1" "registry_hosts = $2" "${@:3}" >"$tmp/coved.conf"
}

pulls_up() { # as config
    local name
    export COVE_STATE=$tmp/state
    chmod 0711 "$tmp"
    mkdir -m 0700 "$COVE_STATE"
    config "$@"
    chmod 0644 "$tmp/coved.conf"
    export PATH="$bin:$PATH"
    hash -r
    "$bin/cove" up --state "$COVE_STATE" --config "$tmp/coved.conf" --listen "127.0.0.1:$(free_port)" >>"$keeper_log" 2>&1 </dev/null &
    up=$!
    within 60 grep -q 'the API is at' "$keeper_log" || { not_ok "cove up starts" "$(brief "$(tail -n 5 "$keeper_log")")"; exit 1; }
    url=$(grep -aoE 'http://127\.0\.0\.1:[0-9]+' "$keeper_log" | head -n 1)
    for name in one two; do
        cove tenant add "$name" >/dev/null
        declare -g "key_$name=$(cove key create --scope admin "$name" | grep -oE 'e2b_[0-9a-f]{40}' | head -n 1)"
    done
}

settings() { config "$@"; kill -HUP "$up"; reloads=$((${reloads:-0} + 1)); within 20 reloaded; }
reloaded() { [ "$(grep -acE 'reloaded$' "$keeper_log")" -ge "$reloads" ]; }

child() { # name: its pid
    local p
    for p in $(cat "/proc/$up/task/$up/children"); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] && echo "$p" && return 0
    done
    return 1
}

# ---- requests ----
api() { # key, method, path, body
    curl -s --max-time 60 -X "$2" -H "Authorization: Bearer $1" -H 'Content-Type: application/json' "$url$3" ${4:+-d "$4"}
}
field() { python3 -c 'import json, sys
v = json.load(sys.stdin).get(sys.argv[1])
print("" if v is None else v if isinstance(v, str) else json.dumps(v))' "$1"; }
build() { api "$1" POST /v1/builds "$2" | sed -nE 's/.*"id": ?"([^"]+)".*/\1/p'; } # key, body: its id
ended() { api "$1" GET "/v1/builds/$2" | grep -qE '"ended_at": ?[^n ]'; }
outcome() { # key, build: state and reason
    within 60 ended "$1" "$2"
    api "$1" GET "/v1/builds/$2" | python3 -c 'import json, sys; b = json.load(sys.stdin); print(b["state"], b["reason"] or "")'
}
run() { api "$1" POST /v1/run "{\"template\": \"$2\", \"args\": $3}" | field stdout; } # key, template, words

# ---- what is there of images ----
pulled() { ls "$COVE_STATE/templates" | grep -c '^pulled\.'; }
files() { ls "$COVE_STATE/templates/.layers" 2>/dev/null | grep -c erofs; }
left() { ls -A "$COVE_STATE/templates" "$COVE_STATE/templates/.layers" | grep -E '^(\.build-pulled|\.lock-pulled|new\.)'; }
nothing_left() { [ -z "$(left)" ]; }
asks() { grep -q blobs "$tmp/asked"; } # whether the liar was asked for a layer
