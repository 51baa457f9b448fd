"""What docs.py must know of the commands in the pages: what comes before them, and which cannot run as they are, and why."""
from collections import namedtuple

# page, fits: which commands. reason: why they cannot run here. instead: what `fits` is replaced by. until: runs for ever, and is ended when
# its output is like this. before: shell text for this command alone. prints: false if the page shows another output than a test can have.
Row = namedtuple("Row", "page fits reason instead until before prints", defaults=(None,) * 4 + (True,))


def everywhere(env):
    """In every command: the addresses and the directory of the server that the test has started."""
    return [(r"(127\.0\.0\.1|localhost):8000", r"\1:" + env["PORT"]), (r"/var/lib/cove\b", env["COVE_STATE"]), (r"/backups\b", "."), (r"/root/backup\.pass", "backup.pass")]


# Shell text that a reader would have done before: files, sandboxes and variables that the page speaks of.
BEFORE = {
    "README.md": "echo 'print(1)' >script.py; echo x >token.txt; echo x >big.tar; ID=$(cove create); ln -s $NODE_MODULES node_modules",
    "docs/api.md": "mkdir project here; touch project/a.py; echo x >big.tar",
    "docs/claude.md": "echo x >key.txt",
    "docs/cli.md": "mkdir project; touch project/out.png Makefile; echo x >data; cove create --name box; cove create --name k7f2; ID=$(cove create)",
    "docs/e2b.md": "sed -n '/^```js/,/^```/{/^```/!p}' $PAGE | head -n 4 >app.mjs; ln -s $NODE_MODULES node_modules",
    "docs/isolation.md": "cove tenant add acme",
    "docs/network.md": "COVE=http://127.0.0.1:8000 ID=$(cove create) DB=$(cove create); cove tenant add team-a",
    "docs/operations.md": "echo eight letters >backup.pass",
    "docs/previews.md": "touch app.mjs",
    "docs/secrets.md": "COVE=http://127.0.0.1:8000",
    "docs/tenants.md": "KEY=$(cove key create local)",
    "docs/volumes.md": "COVE=http://127.0.0.1:8000",
    "examples/README.md": "cp $EXAMPLES/chart/* .; ln -s $NODE_MODULES node_modules",
}

BASE = "the template base takes minutes to build: template_test"
NPM = "the packages are in place: sdk.sh installs them"
DOCTOR = "ends with another code on hosts that lack something: doctor_test"
INTERNET = "needs the Internet"
OTHER_HOST = "there is no such server: across_test has another one"
PACKAGE = "changes the host: 'make test-debian12' does it in a machine of its own"
SERVER = "starts a server of its own: up_test and preview_test"
TERMINAL = "needs a terminal: cli_test has one"
THIS_TEST = "is what runs this test"
LONG = "takes longer than a test may"
INSIDE = "is typed inside the sandbox: secrets_test"

ROWS = [
    Row("README.md", r"^make (run|test)", THIS_TEST),
    Row("README.md", r"^npm install", NPM),
    Row("README.md", r"-- \./untrusted", instead="-- true"),
    Row("README.md", r"^cove shell", TERMINAL),
    Row("README.md", r"^cove logs -f", until=r"\d\d:\d\d:\d\d"),
    Row("README.md", r"curl -sI https://example.com", INTERNET),
    Row("README.md", r"^cove login", OTHER_HOST),
    Row("README.md", r"^cove template build base", BASE),
    Row("README.md", r"^cove doctor", DOCTOR),
    Row("README.md", r"sandboxes/ID/exec -d '\{\"command\": \"make -j2\"\}'", instead="sandboxes/$ID/exec -d '{\"command\": \"true\"}'"),
    Row("README.md", r"sandboxes/ID/", instead="sandboxes/$ID/"),
    Row("CONTRIBUTING.md", r"^(make|tests/run|\.ci/run)", THIS_TEST),
    Row("examples/README.md", r"^npm install", NPM),
    Row("docs/claude.md", r"^cove template build", BASE),
    Row("docs/api.md", r"state=running", before="ID=$(cove create)"),
    Row("docs/api.md", r"/snapshots -d", before="ID=$(cove create)"),
    Row("docs/api.md", r"\"make -j4\"", instead="\"echo out; sleep 100\""),
    Row("docs/api.md", r"/output\?from=4096", instead="/output?from=0", until="out"),
    Row("docs/api.md", r"--data-binary 'hello'", before="P=$(curl -s $COVE/v1/sandboxes/$ID/processes -d '{\"command\": \"cat\", \"stdin\": true}' | jq .proc)"),
    Row("docs/api.md", r"path=build&", before="cove exec $ID -- mkdir -p build"),
    Row("docs/api.md", r"files/chmod", before="cove exec $ID -- touch run.sh"),
    Row("docs/api.md", r"files/watch", until=r"ping|type"),
    Row("docs/api.md", r"tar\?path=project&gzip", before="cove cp project $ID:"),
    Row("docs/api.md", r"ports/3000/any", before="cove exec -d $ID -- python3 -m http.server 3000; until cove exec $ID -- curl -s localhost:3000; do sleep 0.1; done; "
        "cove exec $ID -- sh -c 'mkdir -p any; touch any/path'"),
    Row("docs/benchmarks.md", r"make bench", LONG),
    Row("docs/isolation.md", r"--isolation vm ", "needs KVM, which few test machines have: vm_test"),
    Row("docs/isolation.md", r"^make (guest-kernel|test-isolation)", LONG),
    Row("docs/isolation.md", r" base\b", BASE),
    Row("docs/isolation.md", r"^cove template import", "needs an image: vm_image_test makes its own"),
    Row("docs/isolation.md", r" box\b|--snapshot ready|-v data:/data:ro", "of a virtual machine, which needs KVM: vm_save_test, vm_volume_test"),
    Row("docs/cli.md", r"--server https://cove.example.com|^cove login", OTHER_HOST),
    Row("docs/tenants.md", r"--server https://cove.example.com", OTHER_HOST),
    Row("docs/templates.md", r"^echo '(FROM|RUN)|--template app -- python3", "needs a registry: five_lines_test has one"),
    Row("docs/templates.md", r"^docker save|^cove (--server [^ ]+ )?template (import|pull|inspect jobs)|--template python", "needs an image: image_test and pull_test make theirs"),
    Row("docs/templates.md", r"^cove template build (--tag|-f)|^cove template rm app|--template (app|say)", "needs a Dockerfile: dockerfile_test makes its own"),
    Row("docs/templates.md", r"/v1/(builds|run)", "builds from base, which takes minutes to build: builds_test"),
    Row("README.md", r"^cove template pull", "needs a registry: pull_test has one"),
    Row("README.md", r"^cove template build --tag", "needs a Dockerfile: dockerfile_test makes its own"),
    Row("docs/typescript.md", r"npm (install|pack)", "writes into the clone: typescript_test builds, packs and installs a copy"),
    Row("docs/cli.md", r"^cove run -it", TERMINAL),
    Row("docs/cli.md", r"-- make test", instead="-- make --version"),
    Row("docs/cli.md", r"^cove port-forward", until="127.0.0.1"),
    Row("docs/cli.md", r"i39cfhr9cete4ul98qr3a", instead="$ID"),
    Row("docs/e2b.md", r"^npm install", NPM),
    Row("docs/e2b.md", r"^cove up", SERVER),
    Row("docs/install.md", r"^(sudo )?(apt|systemctl|systemd-|rm |make|tools/deps|git clone)|systemctl", PACKAGE),
    Row("docs/install.md", r"template build base", BASE),
    Row("docs/install.md", r"cove doctor", DOCTOR),
    Row("docs/network.md", r"10\.20\.0\.5", "the range is none of the server's network_ranges: egress_way.py"),
    Row("docs/network.md", r"template set .* base$", BASE),
    Row("docs/operations.md", r"apt install|systemctl", PACKAGE),
    Row("docs/operations.md", r"cove doctor", DOCTOR),
    Row("docs/operations.md", r"cove restore --passphrase", "is refused while a server runs: tests/e2e/backup_test"),
    Row("docs/operations.md", r"cove-2026-11-16", instead="cove-$(date +%F)"),
    Row("docs/operations.md", r"&&\n", before="command rm -f cove-*.zst"),
    Row("docs/previews.md", r"^cove up|:8443/", SERVER),
    Row("docs/previews.md", r"http://3000-\$ID", before="until cove exec $ID -- curl -s localhost:3000; do sleep 0.1; done"),
    Row("docs/secrets.md", r"^(curl -H|git clone)", INSIDE),
    Row("docs/secrets.md", r"secrets\": \[", prints=False),
    Row("docs/server.md", r"^cove up --disk-reserve|/health", "needs a full disk: tests/fault/full_disk_test"),
    Row("docs/templates.md", r" base\b|code-interpreter", BASE),
    Row("docs/templates.md", r"\bdesktop\b|\$ID 6080|-- chromium", "the template desktop takes minutes to build: desktop_template_test"),
    Row("docs/tenants.md", r"https://cove.example/", instead="http://127.0.0.1:8000/"),
    Row("docs/tenants.md", r"3cf4a94b779c", before="ID=$(cove key ls --json | jq -r '.[0].id')", instead="$ID"),
    Row("docs/volumes.md", r"\"data\", \"size\"", instead="\"more\", \"size\""),
]
