# sdk.sh - for tests that use E2B's npm packages: the packages, a server with two tenants, and node.
#
#   . "$(dirname "$0")/lib.sh"
#   . "$(dirname "$0")/sdk.sh"
#   need_sdk                    # or skips; $sdk_run is a directory where `import 'e2b'` works
#   start_keeper
#   start_server                # exports what the SDKs look at: E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL
#   run_node program.mjs        # a program in $sdk_run; its ok lines count
#   stop_server
#
# The packages are installed once, by exact version, below the build directory.
# shellcheck shell=bash disable=SC2154

sdk_packages=(e2b@2.51.0 @e2b/code-interpreter@2.8.0)
sdk_dir=$BUILD/npm-e2b
server_pid=

sdk_installed() {
    local package
    for package in "${sdk_packages[@]}"; do
        grep -q "\"version\": \"${package##*@}\"" "$sdk_dir/node_modules/${package%@*}/package.json" 2>/dev/null || return 1
    done
}

sdk_fetch() { # the packages, unless they are there; or why not in $sdk_why
    sdk_why=
    command -v npm >/dev/null || { sdk_why="needs npm"; return 1; }
    mkdir -p "$sdk_dir"
    exec {sdk_lock}>"$sdk_dir/lock"
    flock "$sdk_lock"
    if ! sdk_installed; then
        echo '{"private":true}' >"$sdk_dir/package.json"
        timeout 300 npm install --prefix "$sdk_dir" --no-audit --no-fund --ignore-scripts --save-exact \
            "${sdk_packages[@]}" >"$sdk_dir/npm.log" 2>&1 ||
            sdk_why="npm cannot install ${sdk_packages[*]}: $(tail -n 3 "$sdk_dir/npm.log" | head -c 300 | tr '\n' ' ')"
    fi
    flock -u "$sdk_lock"
    [ -z "$sdk_why" ]
}

sdk_ready() { # or not, and why not in $sdk_why
    local program
    for program in node curl; do
        command -v $program >/dev/null || { sdk_why="needs $program"; return 1; }
    done
    sdk_fetch || return 1
    # Modules are looked for beside and above the program: so the programs run from a copy beside the packages.
    sdk_run=$tmp/sdk
    mkdir "$sdk_run"
    ln -s "$sdk_dir/node_modules" "$sdk_run/node_modules"
}

need_sdk() {
    sdk_ready && return
    skip "$(basename "$0")" "$sdk_why"
    exit 77
}

start_server() { # flags for coved…
    local url
    cove tenant add sdk --sandboxes 0 --cpus 0 --memory 0 --disk 0 --creates-per-s 0 --requests-per-s 0 --streams 0 >/dev/null 2>&1
    cove tenant add other --sandboxes 2 >/dev/null 2>&1
    : >"$tmp/coved.log"
    "$BUILD/coved" --state "$COVE_STATE" --listen "127.0.0.1:${SDK_PORT:-0}" "$@" >"$tmp/coved.log" 2>&1 </dev/null &
    server_pid=$!
    if ! within 20 grep -q 'ready listen=' "$tmp/coved.log"; then
        not_ok "coved starts" "$(tail -n 3 "$tmp/coved.log")"
        exit 1
    fi
    url=http://$(grep -oE '127\.0\.0\.1:[0-9]+' "$tmp/coved.log" | head -n 1)
    E2B_API_KEY=$(cove key create sdk 2>/dev/null)
    OTHER_KEY=$(cove key create other 2>/dev/null)
    export E2B_API_KEY OTHER_KEY E2B_API_URL=$url E2B_SANDBOX_URL=$url
}

# A second address, for HTTPS, under a domain whose certificate is made here. Sets E2B_DOMAIN and takes the addresses away.
start_server_tls() { # flags for coved…
    local port
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    export COVE_DOMAIN=sandboxes.localhost
    cove cert dev --domain "$COVE_DOMAIN" --out "$tmp/tls" >"$tmp/cert.log" 2>&1 || not_ok "cove cert dev" "$(brief "$(cat "$tmp/cert.log")")"
    start_server --tls-listen "127.0.0.1:$port" --tls-cert "$tmp/tls/cert.pem" --tls-key "$tmp/tls/key.pem" \
        --domain "$COVE_DOMAIN" --public-domain "$COVE_DOMAIN:$port" "$@"
    export E2B_DOMAIN=$COVE_DOMAIN:$port NODE_EXTRA_CA_CERTS=$tmp/tls/ca.pem
    unset E2B_API_URL E2B_SANDBOX_URL
}

stop_server() {
    [ -n "$server_pid" ] || return 0
    kill "$server_pid" 2>/dev/null
    wait "$server_pid"
    is "the server ends well" 0 $?
    server_pid=
}

run_node() { # program in $sdk_run, arguments…
    local rc
    (cd "$sdk_run" && timeout $((${SDK_TIMEOUT:-500} * slower)) node --no-warnings "$@")
    rc=$?
    # 1: its own lines said what is wrong; anything else did not come to its end.
    [ $rc -le 1 ] || not_ok "$1 comes to its end" "exit $rc"
    [ $rc -eq 0 ] || failures=$((failures + 1))
    if dead "$server_pid"; then
        not_ok "the server outlives $1" "$(tail -n 3 "$tmp/coved.log")"
        exit 1
    fi
}
