"""Forked contexts of the code interpreter, on the wire. Run by tests/e2e/context_fork_test."""
import statistics
import threading
import time

import harness
from harness import ask, check, same, server, within
from e2b_wire import Box as Wire
from interpreter import Box, begun, hang_up

b = None

# Of every process in the sandbox that this user sees, in MB: pages that several have are counted once.
MEMORY = """import glob
def kilobytes(path):
    try:
        return next(int(l.split()[1]) for l in open(path) if l.startswith('Pss:'))
    except (OSError, StopIteration):
        return 0
sum(kilobytes(p) for p in glob.glob('/proc/[0-9]*/smaps_rollup')) // 1024"""

# How many programs `sleep N` there are.
ALIVE = "import glob\nsum(open(p, 'rb').read() == b'sleep\\x00%d\\x00' for p in glob.glob('/proc/[0-9]*/cmdline'))"


def fork(context, box=None):
    return (box or b).ask("POST", "/contexts/%s/fork" % context, {})


def forked(context, box=None):
    a = fork(context, box)
    assert a.status == 200, a.body
    return a.json["id"]


def default_python():
    return b.ask("GET", "/contexts").json[0]["id"]


def gone_after(seconds, code, want):
    """Asks the first context until the answer is so, or the time is over."""
    return within(seconds, lambda: b.run(code).text == want)


def both_go_their_own_way():
    old = b.context(cwd="/tmp")
    b.run("import os, json, decimal\nos.chdir('/usr'); os.environ['COLOUR'] = 'blue'\nx = [1]\ndef f(): return len(x)\nx",
          context_id=old)
    a = fork(old)
    same("a fork is a context of the same kind", (200, "python", "/tmp"), (a.status, a.json["language"], a.json["cwd"]))
    new = a.json["id"]
    check("a fork has an id of its own", new != old)
    same("a forked context is the last of the list", a.json, b.ask("GET", "/contexts").json[-1])
    same("variables, functions, imports, directory and environment are there", "([1], 1, '/usr', 'blue', True)",
         b.run("x, f(), os.getcwd(), os.environ['COLOUR'], json is not None", context_id=new).text)
    same("the count continues from where it was", 3, b.run("1", context_id=new).of("number_of_executions")[0]["execution_count"])
    b.run("x.append(2); os.chdir('/'); os.environ['COLOUR'] = 'red'", context_id=new)
    b.run("x.append(3)", context_id=old)
    same("changes in the new context are its own", "([1, 2], '/', 'red')",
         b.run("x, os.getcwd(), os.environ['COLOUR']", context_id=new).text)
    same("changes in the new context do not reach the old one", "([1, 3], '/usr', 'blue')",
         b.run("x, os.getcwd(), os.environ['COLOUR']", context_id=old).text)
    same("Out is that of the old one", "[1, 3]", b.run("Out[1]", context_id=forked(old)).text)
    run = b.run("import sys\nprint('a'); print('b', file=sys.stderr)\n1/0", context_id=new)
    same("output and errors are its own", ("a\n", "b\n", "ZeroDivisionError"), (run.out, run.err, run.error.get("name")))
    grandchild = forked(new)
    b.run("x.append(4)", context_id=grandchild)
    same("a fork of a fork", ("[1, 2, 4]", "[1, 2]"), (b.run("x", context_id=grandchild).text, b.run("x", context_id=new).text))
    return old, new, grandchild


def random_numbers():
    old = b.context()
    b.run("import random; random.seed(7)", context_id=old)
    new = forked(old)
    draw = "random.random()"
    check("two do not draw the same random numbers", b.run(draw, context_id=old).text != b.run(draw, context_id=new).text)
    b.run("import asyncio\nawait asyncio.sleep(0.01)", context_id=old)
    new = forked(old)
    same("await works in both", ("1", "2"), (b.run("await asyncio.sleep(0, 1)", context_id=old).text,
                                             b.run("await asyncio.sleep(0, 2)", context_id=new).text))


def interrupts(old, new):
    c, r = b.open("import time\nprint(1)\nwhile True: time.sleep(1)", context_id=new)
    begun(r)
    hang_up(c, r)
    same("a cell of a fork is interrupted, and its variables stay", "[1, 2]", b.run("x", context_id=new).text)
    same("an interrupt of the fork does not reach the old context", "[1, 3]", b.run("x", context_id=old).text)


def ends(old, new, grandchild):
    b.run("import subprocess\np = subprocess.Popen(['sleep', '4321'])", context_id=new)
    b.run("import subprocess\np = subprocess.Popen(['sleep', '1234'])", context_id=old)
    same("the old context is removed", 200, b.ask("DELETE", "/contexts/" + old).status)
    same("the new context is still there when the old one is removed", "[1, 2]", b.run("x", context_id=new).text)
    same("a fork of the fork outlives the removal of the first context", "[1, 2, 4]", b.run("x", context_id=grandchild).text)
    check("what the old one had started is gone", gone_after(5, ALIVE % 1234, "0"))
    same("removing the old context leaves the processes of the new one", "1", b.run(ALIVE % 4321).text)
    again = forked(grandchild)
    same("a fork whose first context is gone can be forked", "[1, 2, 4]", b.run("x", context_id=again).text)
    same("the new context is removed", 200, b.ask("DELETE", "/contexts/" + new).status)
    check("removing a fork ends the processes that it started", gone_after(5, ALIVE % 4321, "0"))
    same("a fork of a context outlives its removal", "[1, 2, 4]", b.run("x", context_id=grandchild).text)
    same("a kernel that ends is an error", "UnexpectedEndOfExecution",
         b.run("import os; os._exit(3)", context_id=again).error.get("name"))
    same("the cell after the end of a kernel has a new kernel", "NameError", b.run("x", context_id=again).error.get("name"))
    same("a fork is restarted", 200, b.ask("POST", "/contexts/%s/restart" % grandchild, {}).status)
    same("a restarted fork has nothing of the old names", "NameError", b.run("x", context_id=grandchild).error.get("name"))
    server.kill()
    server.start()
    last = forked(again)
    same("forks survive a restart of the server", "7", (b.run("y = 7", context_id=last), server.kill(), server.start(),
                                                       b.run("y", context_id=last))[3].text)


def shells():
    old = b.context(language="bash")
    b.run("x=1; f() { echo f$x; }; alias say=echo; cd /usr; sleep 1234 &", context_id=old)
    new = forked(old)
    same("bash: variables, functions, aliases and directory are there", "1 f1 /usr\n",
         b.run("say $x $(f) $PWD", context_id=new).out)
    b.run("x=2; cd /", context_id=new)
    newest = forked(new)
    b.run("x=3", context_id=newest)
    same("each has its own", ["1 /usr\n", "2 /\n", "3 /\n"],
         [b.run("echo $x $PWD", context_id=c).out for c in (old, new, newest)])
    same("jobs and $! are the old one's, as they were", "1 0\n",
         b.run("echo $(jobs | wc -l) $(kill -0 $!; echo $?)", context_id=old).out)
    same("an exit status", ("ExitCode", "5"), (lambda e: (e.get("name"), e.get("value")))(b.run("(exit 5)", context_id=new).error))
    c, r = b.open("echo in it; while true; do sleep 1; done", context_id=new)
    begun(r)
    hang_up(c, r)
    same("a loop is interrupted in one", ["1\n", "2\n", "3\n"], [b.run("echo $x", context_id=c).out for c in (old, new, newest)])
    b.run("sleep 4321 &", context_id=new)
    b.ask("DELETE", "/contexts/" + old)
    same("forks of bash outlive the removal of the first context", ["2\n", "3\n"], [b.run("echo $x", context_id=c).out for c in (new, newest)])
    check("removing a bash context ends the processes that it started", gone_after(5, ALIVE % 1234, "0"))
    same("removing a context leaves the processes of its forks", "1", b.run(ALIVE % 4321).text)
    b.ask("DELETE", "/contexts/" + new)
    check("removing a context ends the processes that it started", gone_after(5, ALIVE % 4321, "0"))
    same("exit ends one", ("ExitCode", "7"), (lambda e: (e.get("name"), e.get("value")))(b.run("exit 7", context_id=newest).error))
    same("a bash context whose bash ended has a new one for the next cell", "new\n", b.run("echo new$x", context_id=newest).out)


def memory():
    old = b.context()
    before = int(b.run(MEMORY).text)
    # 28 MB of list and 112 MB of numbers. The one that changes its list has all of it once more, beside what the other contexts of
    # this sandbox take: 512 MiB have to do.
    b.run("big = list(range(3_500_000)); len(big)", context_id=old)
    one = int(b.run(MEMORY).text) - before
    check("a list of 140 MB is that big", one > 105, one)
    new = [forked(old) for _ in range(3)]
    same("a large list of the first context is in the forks", ["3499999"] * 3, [b.run("big[-1]", context_id=c).text for c in new])
    four = int(b.run(MEMORY).text) - before
    check("four contexts share the memory of the list", four < 1.3 * one, "%d MB instead of %d" % (four, one))
    print("# one context: %d MB, four: %d MB" % (one, four))
    b.run("big[:] = [0] * len(big)", context_id=new[0])
    same("a change in one fork is not seen in the first context", "3", b.run("big[3]", context_id=old).text)
    for c in new + [old]:
        b.ask("DELETE", "/contexts/" + c)


def twenty():
    old = b.context()
    b.run("import json, decimal, sqlite3\nn = 1", context_id=old)
    took, contexts = [], []
    for _ in range(20):
        begin = time.time()
        contexts.append(forked(old))
        took.append(1000 * (time.time() - begin))
    for i, c in enumerate(contexts):
        b.run("n += %d" % i, context_id=c)
    same("twenty forks, each with its own", [str(1 + i) for i in range(20)], [b.run("n", context_id=c).text for c in contexts])
    begin = time.time()
    fresh = b.context()
    b.run("import json, decimal, sqlite3\nn = 1", context_id=fresh)
    print("# a fork: median %.1f ms, least %.1f; a fresh context with its imports: %.1f ms"
          % (statistics.median(took), min(took), 1000 * (time.time() - begin)))
    for c in contexts + [old, fresh]:
        b.ask("DELETE", "/contexts/" + c)


def refusals():
    same("a context that is not there: 404", 404, fork("nope").status)
    same("a well-formed id of no context is 404", 404, fork("01234567-0123-4123-8123-0123456789ab").status)
    for language, word in (("javascript", b"threads"), ("typescript", b"threads"), ("r", b"R"), ("java", b"threads")):
        made = b.ask("POST", "/contexts", {"language": language})
        if made.status != 200:
            continue
        a = fork(made.json["id"])
        check("%s is refused with the reason" % language, a.status == 501 and word in a.body, (a.status, a.body))
    same("a context without a kernel is forked", 200, fork(default_python()).status)


def busy():
    old = b.context()
    b.run("z = 1", context_id=old)
    done = []
    t = threading.Thread(target=lambda: done.append(b.run("import time; open('/tmp/busy', 'w').close(); time.sleep(1); z = 2", context_id=old)))
    t.start()
    check("a cell runs", gone_after(30, "import os; os.path.exists('/tmp/busy')", "True"))
    new = forked(old)
    t.join()
    same("a fork waits for the cell that runs", "2", b.run("z", context_id=new).text)
    stuck = b.context()
    c, r = b.open("import time; time.sleep(60)", context_id=stuck)
    answers = []
    t = threading.Thread(target=lambda: answers.append(fork(stuck)))
    t.start()
    hostile()  # meanwhile
    t.join(30)
    same("a fork of a busy context is given up in the end: 409, with the reason", [(409, True)], [(a.status, b"between two cells" in a.body) for a in answers])
    hang_up(c, r)


def hostile():
    """The kernel is the sandbox's: what it makes of a fork hurts nobody else."""
    old = b.context()
    b.run("import os\nos.fork = lambda: (_ for _ in ()).throw(OSError(11, 'no more processes'))", context_id=old)
    a = fork(old)
    check("a kernel that cannot fork says why", a.status == 503 and b"no more processes" in a.body, (a.status, a.body))
    same("a kernel that cannot fork continues", "2", b.run("1+1", context_id=old).text)
    b.run("import os\nos.fork = lambda: os._exit(9)", context_id=old)
    a = fork(old)
    same("a fork that ends the kernel is 409", 409, a.status)
    same("a context whose kernel died of a fork has a new one for the next cell", "2", b.run("1+1", context_id=old).text)
    listed = len(b.ask("GET", "/contexts").json)
    a = fork(old)
    same("a context whose kernel was replaced can be forked", (200, listed + 1), (a.status, len(b.ask("GET", "/contexts").json)))


def crowded():
    """As many processes as the sandbox may have: the fork that is one too many is refused, and nothing else ends."""
    global b
    box = ask("POST", "/v1/sandboxes", {"template": "host", "limits": {"pids": 40}}, headers={"Content-Type": "application/json"})
    assert box.status in (200, 201), box.body
    kept = b
    b = Box.__new__(Box)
    b.id = box.json["id"]
    b.token = ask("POST", "/sandboxes/%s/connect" % b.id, {"timeout": 600}).json["envdAccessToken"]
    old = b.context()
    run = b.run("here = 1\nhere", context_id=old)
    check("a cell runs in a small sandbox", run.text == "1", (run.status, run.body))
    made = []
    while len(made) < 40:
        a = fork(old)
        if a.status != 200:
            break
        made.append(a.json["id"])
    check("the limit of processes ends it with a reason", 2 <= len(made) < 40 and a.status >= 400 and a.body, (len(made), a.status, a.body))
    print("# refused behind %d forks: %d %s" % (len(made), a.status, a.body[:120]))
    same("the limit of processes does not hurt the forked context", "1", b.run("here", context_id=old).text)
    alive = [c for c in made if b.run("here", context_id=c).text == "1"]
    check("the limit of processes ends at most the last fork", len(alive) >= len(made) - 1, (len(alive), len(made)))
    ask("DELETE", "/v1/sandboxes/" + b.id)
    b = kept


def too_many():
    """As many contexts as a sandbox may have. What makes a context is its process's tag, so that short ones will do."""
    old = b.context()
    box = Wire(box=b)

    def start(first):
        for i in range(first, 1024, 4):
            for _ in box.start("", cmd="/bin/true", args=[], tag="cove.kernel.python.01234567-0123-4123-8123-%012d" % i):
                pass

    threads = [threading.Thread(target=start, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    a = fork(old)
    check("a sandbox with 1024 contexts gets no more: 429", a.status == 429 and b"1024" in a.body, (a.status, a.body))
    same("a sandbox with 1024 contexts gets no new ones by POST /contexts: 429", 429, b.ask("POST", "/contexts", {}).status)
    same("contexts continue when a sandbox has as many as it may", "2", b.run("1+1", context_id=old).text)


def parts():
    global b
    b = Box()
    family = both_go_their_own_way()
    random_numbers()
    interrupts(*family[:2])
    ends(*family)
    for part in (shells, twenty, memory, refusals, busy, crowded, too_many):
        part()
    same("the sandbox is killed", 204, b.kill())


harness.run(parts)
