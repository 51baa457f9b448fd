"""The bash kernel: one bash that lives as long as the context, so directory, variables and functions stay.

bash takes cells from a pipe, each ended by a NUL, and answers on another with the exit status. It prints straight into the
pipes of the pump. Interrupted, it leaves the cell at once and waits for the next.

A cell whose last command fails ends with an error of the name ExitCode; `exit` in a cell ends bash, and the next cell gets
a new one.

A fork of the context (fork.py) is a subshell in a process group of its own, which goes on with the same loop and pipes of its own; the
new kernel joins its group. The subshell of a subshell in between is for the sake of $! and the list of jobs, which stay as they were."""

import json
import os
import select
import shlex
import signal

TAKE, TELL = 9, 8

# The status is told before the next cell is read, so that an interrupt, which goes on with the loop, tells it, too.
LOOP = ("trap 'continue 9999' INT; shopt -s expand_aliases; "
        "while printf '%s\\0' \"$?\" >&8; IFS= read -r -d '' -u 9 __cove_cell; do "
        "eval \"unset __cove_cell; $__cove_cell\"; done")

# The pid, and at the end the status, which nobody can wait for.
FORK = ("( set -m; ( set +m; trap 'printf \"x%s\\0\" \"$?\" >&8' EXIT; printf '%s\\0' \"$BASHPID\" >&8; "
        + LOOP + " ) & ) 9<{0} 8>{1} </dev/null")
MOVE = "exec >/proc/{0}/fd/1 2>/proc/{0}/fd/2"

SAVE = "__cove_had_{0}=${{{0}+x}}; __cove_was_{0}=${{{0}-}}; export {0}={1}"
RESTORE = ("if [ -n \"$__cove_had_{0}\" ]; then export {0}=\"$__cove_was_{0}\"; else unset {0}; fi; "
           "unset __cove_had_{0} __cove_was_{0}")


def end_of(pid):
    """A descriptor that can be read from when the process has ended; -1: this kernel has none (gVisor's)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def has_ended(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            return f.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


class Bash:
    def __init__(self):
        take, self.give = os.pipe()
        self.hear, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for fd, wanted in ((take, TAKE), (tell, TELL)):
                os.dup2(fd, wanted)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-c", LOOP])
        os.close(take)
        os.close(tell)
        self.end = end_of(self.pid)
        self.heard = b""
        self.ended = None

    def word(self):
        """What it tells next; None: it has ended."""
        poll = select.poll()
        poll.register(self.hear, select.POLLIN)
        if self.end >= 0:
            poll.register(self.end, select.POLLIN)
        while b"\0" not in self.heard:
            ended = self.end < 0 and has_ended(self.pid)
            ready = [fd for fd, _ in poll.poll(0 if ended else 100 if self.end < 0 else None)]
            data = os.read(self.hear, 4096) if self.hear in ready else b""
            if not data and (ended or self.end in ready):
                return None
            self.heard += data
        text, _, self.heard = self.heard.partition(b"\0")
        return text

    def status(self):
        """Of the cell that runs; None: bash has ended."""
        text = self.word()
        if text is None or text.startswith(b"x"):
            return self.over(text)
        return int(text) if text.isdigit() else 1

    def over(self, text):
        try:
            _, status = os.waitpid(self.pid, 0)
            self.ended = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        except ChildProcessError:  # of a fork: it told it, unless it was killed
            self.ended = int(text[1:]) if text and text[1:].isdigit() else 137
        self.close()
        return None

    def close(self):
        for fd in (self.give, self.hear, self.end):
            if fd >= 0:
                os.close(fd)

    def fork(self):
        """Another one like it, as a Bash of nobody's; None: it has ended."""
        new = Bash.__new__(Bash)
        take, new.give = os.pipe()
        new.hear, tell = os.pipe()
        new.heard, new.ended, new.end = b"", None, -1
        paths = ["/proc/%d/fd/%d" % (os.getpid(), fd) for fd in (take, tell)]
        status = self.run(FORK.format(*paths))
        os.close(take)
        os.close(tell)
        pid = new.told() if status == 0 else None
        if pid is None:
            os.close(new.give)
            os.close(new.hear)
            return None
        new.pid = int(pid)
        new.end = end_of(new.pid)
        return new

    def told(self):
        """The first word of a fork, for which there is nothing to wait yet but its pipe."""
        while b"\0" not in self.heard:
            data = os.read(self.hear, 4096)
            if not data:
                return None
            self.heard += data
        text, _, self.heard = self.heard.partition(b"\0")
        return text if text.isdigit() else None

    def run(self, code):
        data = code.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"
        try:
            while data:
                data = data[os.write(self.give, data):]
        except BrokenPipeError:
            pass
        return self.status()


class Kernel:
    def __init__(self, cells, events, load):
        self.load, self.forks = load, None
        self.cells = os.fdopen(cells, "rb")
        self.events = events
        self.bash = None
        self.count = 0
        self.interrupted = False

    def emit(self, **event):
        data = (json.dumps(event, separators=(",", ":")) + "\n").encode("ascii")
        while data:
            data = data[os.write(self.events, data):]

    def ready(self):
        """Another bash where the last one has ended."""
        if self.bash is None or self.bash.ended is not None:
            self.bash = Bash()
            self.bash.status()
        return self.bash

    def run(self, cell):
        env = {n: v for n, v in (cell.get("env") or {}).items() if n.isidentifier()}
        bash = self.ready()
        for name, value in env.items():
            bash.run(SAVE.format(name, shlex.quote(value)))
        self.interrupted = False
        status = bash.run(cell["code"])
        if status is None:
            self.emit(type="error", name="ExitCode", value=str(bash.ended),
                      traceback="bash ended with exit code %d: its variables and functions are gone" % bash.ended)
            return
        if self.interrupted:
            self.emit(type="error", name="KeyboardInterrupt", value="", traceback="the cell was interrupted")
        elif status:
            self.emit(type="error", name="ExitCode", value=str(status),
                      traceback="the last command ended with exit code %d" % status)
        for name in env:
            bash.run(RESTORE.format(name))

    def fork(self, cell):
        """A kernel like this one with a bash like its own, for a context of its own. Both return from here."""
        self.emit(type="begin", id=cell["id"], execution_count=self.count)
        old, bash, between = self.bash, None, None
        try:
            if old is not None and old.ended is None:
                bash = old.fork()
                if bash is None:
                    raise OSError(0, "bash did not fork")
            self.forks = self.forks or self.load("fork")
            between = self.forks.split_off(cell["fork"]["name"], cell["fork"]["pid"],
                                           (self.cells.fileno(), self.events), bash.pid if bash else 0)
        except OSError as error:
            self.emit(type="error", name="ForkError", value=error.strerror or str(error), traceback="")
        if between != 0:
            if bash is not None:
                bash.close()
            self.emit(type="end", id=cell["id"])
            if between:
                self.forks.reap(between)
            return
        if bash is not None:
            old.close()
            bash.status()
            bash.run(MOVE.format(os.getpid()))
        self.bash = bash

    def on_interrupt(self, number, frame):
        self.interrupted = True

    def serve(self):
        signal.signal(signal.SIGINT, self.on_interrupt)
        for line in self.cells:
            cell = json.loads(line)
            if "fork" in cell:
                self.fork(cell)
                continue
            self.count += 1
            self.emit(type="begin", id=cell["id"], execution_count=self.count)
            self.run(cell)
            self.emit(type="end", id=cell["id"])


def main(cells, events, load):
    Kernel(cells, events, load).serve()
