# columns.sh - one list of promises of a sandbox, for each isolation: drivers_test and vm_test run it. The first argument of each
# function is the isolation, the second a sandbox of it; there is a jail named `neighbour`, which must not notice anything.
# shellcheck shell=bash disable=SC2154

well() { [ "$(cove exec neighbour -- echo fine)" = fine ]; }
life_is() { cove ps --json 2>/dev/null | python3 -c 'import json, sys
print(*[s["state"] for s in json.load(sys.stdin) if s["id"] == sys.argv[1]])' "$1" | grep -qx "$2"; }
gone() { ! cove ps -q | grep -qx "$1"; }
pid_of() { grep -ao "running sandbox=$1 .* pid=[0-9]*" "$keeper_log" | grep -o 'pid=[0-9]*' | head -n 1 | cut -d= -f2; }
# Below the sandbox's first process, by a word of their command line.
below() { # pid, word
    local p
    for p in /proc/[0-9]*; do
        [ "$(readlink "$p/ns/cgroup" 2>/dev/null)" = "$(readlink "/proc/$1/ns/cgroup")" ] && [ "${p#/proc/}" != "$1" ] &&
            { tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "$2" && echo "${p#/proc/}"
    done
}

# ---- what every isolation does ----
commands() { # isolation, sandbox
    is "$1: output and standard error arrive apart" "out|err" "$(cove exec "$2" -- sh -c 'echo out; echo err >&2' 2>"$tmp/err" | tr -d '\n')|$(cat "$tmp/err")"
    rc_is "$1: an exit code arrives" 7 cove exec "$2" -- sh -c 'exit 7'
    rc_is "$1: a signal is told" 137 cove exec -q "$2" -- sh -c 'kill -9 $$'
    is "$1: standard input arrives, to its end" "$(seq 1 200000 | md5sum)" "$(seq 1 200000 | cove exec -i "$2" -- md5sum)"
    is "$1: much output arrives whole" "$(head -c 20000000 /dev/zero | md5sum)" "$(cove exec "$2" -- head -c 20000000 /dev/zero | md5sum)"
    is "$1: a command is the template's user" user "$(cove exec "$2" -- id -un)"
    is "$1: the host name is the sandbox's" "box-$1" "$(cove exec "$2" -- hostname)"
    like "$1: a terminal is one" 'dev/pts/[0-9]+.*30 100' "$(script -qec "stty rows 30 cols 100; cove exec -t $2 -- sh -c 'tty; stty size'" /dev/null </dev/null | tr -d '\0' | tr '\r\n' '  ')"
    holds "$1: a terminal whose size changes tells its command" "$BUILD/helpers/pty_run" 30x90 'wait=30 90' size=40x120 'wait=40 120' -- \
        cove exec -t "$2" -- sh -c 'trap "stty size; exit 0" WINCH; stty size; while :; do sleep 0.05; done'
    rc_is "$1: a command that takes too long is ended" 124 cove exec --timeout 300ms "$2" -- sh -c 'setsid sleep 77 & sleep 78'
    fails "$1: a command that takes too long leaves no process" cove exec "$2" -- pgrep -x sleep
    cove exec -d "$2" -- sh -c 'echo on >/tmp/detached; exec sleep 600' >/dev/null
    holds "$1: a detached command continues" within 10 cove exec "$2" -- pgrep -x sleep
    many=$(for i in $(seq 1 20); do cove exec "$2" -- echo "$i" & done | sort -n | tr '\n' ' '; wait)
    is "$1: twenty commands at once all answer" "$(seq -s ' ' 1 20) " "$many"
}
# What becomes of a command, and of its input, when its client is gone.
clients() { # isolation, sandbox
    local client
    running() { cove exec "$2" -- pgrep -f "^sleep $1"; } # seconds, sandbox
    ended() { running "$1" "$2"; [ $? -eq 1 ]; } # of pgrep: none is found
    cove exec -d "$2" -- sleep 700 >/dev/null
    head -c 3000000 /dev/urandom >"$tmp/input"
    cove exec "$2" -- sleep 701 &
    client=$!
    within 20 running 701 "$2"
    kill -KILL $client
    wait $client 2>/dev/null
    holds "$1: a killed client's command ends" within 20 ended 701 "$2"
    cove exec -i "$2" -- sleep 702 <"$tmp/input" &
    client=$!
    within 20 running 702 "$2"
    kill -KILL $client
    wait $client 2>/dev/null
    holds "$1: a killed client's command ends also with input that was never read" within 20 ended 702 "$2"
    cove exec -i "$2" -- sh -c 'read first; exec sleep 703' < <(echo line) &
    client=$!
    within 20 running 703 "$2"
    kill -KILL $client
    wait $client 2>/dev/null
    holds "$1: a killed client's command ends also with input that was read to its end" within 20 ended 703 "$2"
    holds "$1: a detached command outlives clients that are killed" running 700 "$2"
    is "$1: an answer to input that has ended is whole" "line end" "$(echo line | cove exec -i "$2" -- sh -c 'cat; sleep 0.2; echo end' | tr '\n' ' ' | sed 's/ $//')"
    is "$1: several megabytes of input arrive before their end" "$(md5sum <"$tmp/input")" "$(cove exec -i "$2" -- md5sum <"$tmp/input")"
    cove exec "$2" -- pkill -f '^sleep 700'
    input_beside_output "$1" "$2"
    input_of_many "$1"
}
# A process that continues without its client, and prints three bytes for each that it reads: more than is kept for a reader.
input_beside_output() { # isolation, sandbox
    head -c 1000000 "$tmp/input" >"$tmp/million"
    "$BUILD/helpers/exec_steps" "$COVE_STATE" "$2" pipe wait=ready "file=$tmp/million" -- python3 -uc 'import hashlib, os, time
sum, have = hashlib.md5(), 0
print("ready")
while have < 1000000:
    data = os.read(0, 10000)
    if not data: break
    sum.update(data)
    have += len(data)
    os.write(1, data * 3)
    time.sleep(0.02)
open("sum", "w").write(sum.hexdigest() + " " + str(have))
os.rename("sum", "printed")' >"$tmp/steps" 2>&1
    is "$1: a client with output leaves while its input is unread" 0 "$?"
    fails "$1: the process of a client with output has not read everything when the client leaves" cove exec "$2" -- test -e printed
    holds "$1: a process that prints does not wait for its client that is gone" within 25 cove exec "$2" -- test -e printed
    is "$1: input of a client with output is whole" "$(md5sum <"$tmp/million" | cut -c1-32) 1000000" "$(cove exec "$2" -- cat printed)"
}
# Each piece comes with a client of its own, which is gone before the process has read it.
input_of_many() { # isolation; a sandbox of its own, because it takes a server
    local path=$PATH v1=http://localhost/v1/sandboxes/input-$1/processes proc part
    serve_start
    cove create --isolation "$1" --name "input-$1" --memory 128M >/dev/null
    api() { curl -s --unix-socket "$COVE_STATE/cove.sock" "$@"; }
    proc=$(api "$v1" -d '{"args": ["python3", "-c", "import hashlib, os, time\nsum, have = hashlib.md5(), 0\nwhile have < 3000000:\n    data = os.read(0, 10000)\n    sum.update(data)\n    have += len(data)\n    time.sleep(0.002)\nopen(\"sum\", \"w\").write(sum.hexdigest())\nos.rename(\"sum\", \"summed\")"], "stdin": true}' |
        grep -o '"proc": *[0-9]*' | grep -o '[0-9]*')
    for part in 0 1 2; do
        tail -c +$((part * 1000000 + 1)) "$tmp/input" | head -c 1000000 | api --data-binary @- "$v1/$proc/stdin" >/dev/null
    done
    holds "$1: input of clients that are gone arrives" within 60 cove exec "input-$1" -- test -e summed
    is "$1: input of clients that are gone is whole" "$(md5sum <"$tmp/input" | cut -c1-32)" "$(cove exec "input-$1" -- cat summed)"
    cove kill "input-$1"
    serve_stop
    export PATH=$path
    hash -r
}
files() {
    head -c 3000000 /dev/urandom >"$tmp/file"
    cove cp "$tmp/file" "$2:/home/user/file" && cove cp "$2:/home/user/file" "$tmp/back"
    holds "$1: a file goes in and comes back the same" cmp "$tmp/file" "$tmp/back"
    mkdir -p "$tmp/tree/a/b" && echo deep >"$tmp/tree/a/b/c"
    cove cp -r "$tmp/tree" "$2:/home/user/tree" 2>/dev/null || cove cp "$tmp/tree" "$2:/home/user/tree"
    is "$1: a directory arrives with what is below it" deep "$(cove exec "$2" -- cat tree/a/b/c)"
    fails "$1: a file that is not there is an error" cove cp "$2:/home/user/none" "$tmp/none"
}
ports() { # by a server, which is what passes bytes of ports, and a sandbox of its own
    local path=$PATH forward at
    serve_start
    cove create --isolation "$1" --name "ports-$1" >/dev/null
    cove exec -d "ports-$1" -- sh -c 'mkdir -p web && cd web && echo served >index.html && exec python3 -m http.server 8123' >/dev/null
    cove port-forward "ports-$1" 0:8123 >"$tmp/forward" 2>&1 &
    forward=$!
    within 20 grep -q '127.0.0.1:' "$tmp/forward"
    at=$(grep -o '127.0.0.1:[0-9]*' "$tmp/forward" | head -n 1)
    answers() { [ "$(curl -s --noproxy '*' -m 5 "http://$at/")" = served ]; }
    holds "$1: a server inside is reached from outside" within 20 answers
    kill $forward && wait $forward 2>/dev/null
    cove kill "ports-$1"
    serve_stop
    export PATH=$path
    hash -r
}
limits() {
    like "$1: memory is the limit's, as seen inside" '^MemTotal: +524288 kB' "$(cove exec "$2" -- head -n 1 /proc/meminfo)"
    rc_is "$1: a disk that is full is an error, and no more than that" 1 cove exec "$2" -- sh -c 'head -c 300M /dev/zero >~/big'
    holds "$1: the sandbox continues after a full disk" cove exec "$2" -- sh -c 'rm ~/big && echo there >~/small'
    like "$1: stats tell memory and disk" '"memory_bytes": *[1-9].*"disk_bytes": *[1-9]' "$(cove stats --json "$2" | tr -d '\n')"
}
volumes() {
    local name="vol-$1" reader
    cove volume create "$name" --size 32m >/dev/null
    cove create --isolation "$1" --name "writer-$1" -v "$name:/srv/deep/data" >/dev/null
    is "$1: a volume is the user's to write to" "user kept" "$(cove exec "writer-$1" -- sh -c 'id -un; echo kept >/srv/deep/data/file; cat /srv/deep/data/file' | tr '\n' ' ' | sed 's/ $//')"
    reader=$(cove create --isolation "$1" -v "$name:/data:ro")
    is "$1: a reader sees what is written, as the same user's" "kept user" "$(cove exec "$reader" -- sh -c 'cat /data/file; stat -c %U /data/file' | tr '\n' ' ' | sed 's/ $//')"
    cove exec "writer-$1" -- sh -c 'echo later >/srv/deep/data/file; mkdir /srv/deep/data/new'
    is "$1: a reader sees what is written later" "later new" "$(cove exec "$reader" -- sh -c 'cat /data/file; ls -d /data/new | cut -d/ -f3' | tr '\n' ' ' | sed 's/ $//')"
    fails "$1: a reader cannot write" cove exec "$reader" -- sh -c 'echo x >/data/x'
    fails "$1: a reader's root cannot write" cove exec -u root "$reader" -- sh -c 'echo x >/data/x'
    is "$1: a jail reads a volume at the same time" later "$(cove run --isolation jail -v "$name:/data:ro" -- cat /data/file)"
    like "$1: a write to a full volume is ENOSPC" 'No space left' "$(cove exec "writer-$1" -- sh -c 'head -c 64m /dev/zero >/srv/deep/data/big' 2>&1)"
    cove exec "writer-$1" -- rm /srv/deep/data/big
    stop_keeper KILL
    launch_keeper
    rc_is "$1: after kill -9 of the keeper a second writer is still refused" 102 cove create -v "$name:/data"
    cove kill "writer-$1" "$reader" >/dev/null
    is "$1: a volume outlives its sandboxes" later "$(cove run --isolation "$1" -v "$name:/data" -- cat /data/file)"
    rc_is "$1: a path in another mount is refused" 65 cove create --isolation "$1" -v "$name:/usr/volume"
    rc_is "$1: a path through a link is refused" 65 cove create --isolation "$1" -v "$name:/bin/volume"
    free() { cove volume rm "$name"; }
    holds "$1: a volume is removed when no sandbox has it" within 20 free
}
sleeping() {
    cove exec -d "$2" -- sh -c 'while :; do date +%s%N >/tmp/now; sleep 0.05; done' >/dev/null
    within 10 cove exec "$2" -- test -s /tmp/now
    holds "$1: a sandbox is frozen" cove pause "$2"
    holds "$1: a frozen sandbox is listed as paused" life_is "$2" paused
    holds "$1: a sandbox is thawed" cove resume "$2"
    is "$1: a thawed sandbox answers" back "$(cove exec "$2" -- echo back)"
}
killed_keeper() {
    cove exec -d "$2" -- sh -c 'echo mine >/tmp/kept; exec sleep 601' >/dev/null
    within 10 cove exec "$2" -- test -s /tmp/kept
    stop_keeper KILL
    launch_keeper
    is "$1: a new keeper adopts a sandbox" mine "$(cove exec "$2" -- cat /tmp/kept)"
    holds "$1: processes of an adopted sandbox continue" cove exec "$2" -- pgrep -x sleep
    holds "$1: an adopted one is frozen and thawed" sh -c "cove pause $2 && cove resume $2 && cove exec $2 -- true"
}
# Whom the kernel ends for it is the kernel's choice: a process, or everything. Both are told.
memory_told() { # sandbox
    cove stats --json "$1" 2>/dev/null | grep -q '"oom_kills": [1-9]' || grep -aq "$1.*ran out of memory" "$keeper_log"
}
memory() {
    local box
    box=$(cove create --isolation "$1" --memory 128M --name "hungry-$1")
    fails "$1: a command that takes more memory than there is is ended" cove exec "$box" -- python3 -c 'x = []
while True: x.append(bytearray(8 << 20))'
    holds "$1: the end of a command for want of memory is told" memory_told "$box"
    holds "$1: the neighbour did not notice" well
    cove kill "$box" >/dev/null 2>&1
}
processes() {
    local box most
    box=$(cove create --isolation "$1" --pids 64 --files 100 --name "forks-$1")
    is "$1: a process has as many open files as its limit says" "97 EMFILE" "$(cove exec "$box" -- python3 -c 'import errno, os
n = 0
try:
    while True: n += os.dup(0) > 0
except OSError as e: print(n, errno.errorcode[e.errno])')"
    fails "$1: the limit of open files cannot be raised" cove exec "$box" -- sh -c 'ulimit -n 200'
    most=$(cat /sys/fs/cgroup/pids/*/"$(cgroup_of "$box")"/pids.max /sys/fs/cgroup/*/"$(cgroup_of "$box")"/pids.max 2>/dev/null | head -n 1)
    holds "$1: there is a limit of processes" [ "$most" -le 320 ]
    timeout 60 cove exec --timeout 5s "$box" -- python3 -c 'import os, time
for i in range(4000):
    try:
        if os.fork() == 0: time.sleep(100)
    except OSError: break
time.sleep(100)' >/dev/null 2>&1
    if cove exec "$box" -- true 2>/dev/null; then ok "$1: a command that wants thousands of processes is refused them"
    else holds "$1: a command that wants thousands of processes ends its sandbox" within 20 gone "$box"; fi
    holds "$1: the neighbour did not notice the processes" well
    cove kill "$box" >/dev/null 2>&1
    holds "$1: a sandbox with thousands of processes can be killed" within 10 gone "$box"
}
