"""The code interpreter's kernels: one process per context, started as `python3 kernel.py LANGUAGE`, as root where the
sandbox has root.

Two processes. The one that was started, the *pump*, owns the way out: its stdout is read by the server, one JSON event
per line. It forks the *kernel*, which runs the user's code and has as descriptors

    0          /dev/null
    1, 2       pipes to the pump: whatever the code, or a program that it started, prints
    cells      the server's lines, {"id":…, "code":…, "env":{…}}, one per cell
    events     a pipe to the pump: begin, result, error, end

A context that was forked from another has a pump that was started as `python3 kernel.py fork NAME` (fork.py).

The pump reads nothing but pipes and never runs anything of the user, so code that holds the interpreter's lock, prints
a gigabyte or is killed in the middle neither blocks nor loses output. Order: the kernel has written its output before it
writes an event, and the pump empties the output pipes before it passes an event on.

Events are ASCII (json.dumps does that), so that a client which decodes piece by piece never sees half a character.

This file is compiled at every start: what is not needed for a first cell lives in files that are loaded when needed.
"""

import os
import select
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PIECE = 65536
PIPE_BYTES = 1 << 20

# What programs a language needs, and what brings them.
PROGRAMS = {
    "javascript": (["node"], "Node.js (package nodejs)"),
    "typescript": (["node"], "Node.js (package nodejs)"),
    "bash": (["bash"], "bash"),
    "r": (["Rscript"], "R (package r-base-core)"),
    "java": (["java", "jshell"], "a JDK (package default-jdk-headless)"),
}


def write_all(fd, data):
    view = memoryview(data)
    while len(view):
        view = view[os.write(fd, view):]


class Output:
    """One output pipe: bytes in, events out. A character that is cut in two waits for its rest; with `lines`, so does a line, for
    as long as Pump.PATIENCE: R writes what one line is made of piece by piece."""

    def __init__(self, fd, name, lines=False):
        import codecs

        self.fd = fd
        self.name = name
        self.lines = lines
        self.held = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(fd, False)

    def read(self):
        """The next bytes, b"" at the end of the pipe, None while there are none."""
        try:
            return os.read(self.fd, PIECE)
        except BlockingIOError:
            return None

    def event(self, data, final=False, whole=False):
        """whole: what is held comes out, too."""
        from json.encoder import encode_basestring_ascii as quoted

        text = self.held + self.decoder.decode(data, final)
        cut = len(text) if whole or final or not self.lines or len(text) > PIECE else text.rfind("\n") + 1
        text, self.held = text[:cut], text[cut:]
        if not text:
            return b""
        return ('{"type":"%s","text":%s}\n' % (self.name, quoted(text))).encode("ascii")


class Pump:
    """The order in which things leave: the begin of a cell, its output, its events.

    Whatever the kernel printed before an event is in the output pipes when the event is in its own. So events are looked
    for behind every read of output, and output is read to its end behind every read of events; then all of it is written,
    the begin of a cell first, for what was read with it may be of that cell."""

    BEGIN = b'{"type":"begin"'
    PATIENCE = 200  # ms that the beginning of a line waits for its end

    def __init__(self, out_fd, outputs, events_fd):
        self.out_fd = out_fd
        self.outputs = outputs
        self.events_fd = events_fd
        self.poll = select.poll()
        self.soon = select.poll()
        self.soon.register(events_fd, select.POLLIN)
        for fd in [o.fd for o in outputs] + [events_fd]:
            self.poll.register(fd, select.POLLIN)

    def close(self, output):
        """The last writer is gone."""
        self.poll.unregister(output.fd)
        os.close(output.fd)
        self.outputs.remove(output)
        return output.event(b"", True)

    def take(self, output, most):
        """What is there now, as events. Bounded: a background program may write for ever."""
        taken = []
        while most > 0:
            data = output.read()
            if data is None:
                break
            if data == b"":
                taken.append(self.close(output))
                break
            taken.append(output.event(data))
            most -= len(data)
            if not data.endswith(b"\n") and len(data) < PIECE and most > 0:
                self.soon.poll(2)  # print() writes twice: the end of the line is on its way, or the cell ends
        return b"".join(taken)

    def read_events(self):
        """None while there are none, b"" at the end of the kernel."""
        return os.read(self.events_fd, PIECE) if self.soon.poll(0) else None

    def step(self):
        ready = [fd for fd, _ in self.poll.poll(self.PATIENCE if any(o.held for o in self.outputs) else None)]
        text = b"".join([self.take(o, PIECE) for o in list(self.outputs) if o.fd in ready])
        data = self.read_events()
        head = 0
        if data is not None:
            text += b"".join([self.take(o, 2 * PIPE_BYTES) for o in list(self.outputs)])
        if data is not None or not ready:
            text += b"".join([o.event(b"", whole=True) for o in self.outputs])
        if data is not None:
            head = data.find(b"\n") + 1 if data.startswith(self.BEGIN) else 0
        write_all(self.out_fd, (data or b"")[:head] + text + (data or b"")[head:])
        while data and not data.endswith(b"\n"):  # a long event: to its end, with nothing in between
            data = os.read(self.events_fd, PIECE)
            write_all(self.out_fd, data)
        return data != b""

    def run(self):
        # Programs that outlive the kernel keep the output pipes open: what is there at its end is all.
        while self.step():
            pass


def pipe():
    """Both ends above the descriptors that programs expect to be theirs, and not inherited by them."""
    import fcntl

    ends = []
    for fd in os.pipe():
        ends.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100))
        os.close(fd)
    try:
        fcntl.fcntl(ends[0], 1031, PIPE_BYTES)  # F_SETPIPE_SZ
    except OSError:
        pass  # above what this user may have: the usual size does, too
    return ends


def follow(child):
    """The kernel's end becomes ours."""
    _, status = os.waitpid(child, 0)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def split(lines):
    """Forks. Returns the descriptors of cells and events in the kernel; never returns in the pump."""
    import fcntl

    out_r, out_w = pipe()
    err_r, err_w = pipe()
    events_r, events_w = pipe()
    child = os.fork()
    if child == 0:
        cells = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(out_w, 1)
        os.dup2(err_w, 2)
        for fd in (out_r, out_w, err_r, err_w, events_r):
            os.close(fd)
        return cells, events_w
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in (out_w, err_w, events_w):
        os.close(fd)
    try:
        Pump(out, [Output(out_r, "stdout", lines), Output(err_r, "stderr", lines)], events_r).run()
    except OSError:
        os.kill(child, signal.SIGKILL)  # nobody reads any more
    follow(child)


def load(name):
    """A file of this directory as a module, without putting the directory on the user's path."""
    import types

    path = os.path.join(HERE, name + ".py")
    module = types.ModuleType("cove_" + name)
    module.__file__ = path
    sys.modules[module.__name__] = module
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    return module


def missing(programs):
    import shutil

    return [p for p in programs if not shutil.which(p)]


def main(language):
    if language == "fork":
        load("fork").join(sys.argv[2], sys.modules["__main__"])
    if language != "python":
        if language not in PROGRAMS:
            sys.exit("no kernel for the language '%s'" % language)
        programs, brings = PROGRAMS[language]
        if missing(programs):
            sys.exit("%s is not installed in this sandbox: it needs %s" % (programs[0], brings))
    cells, events = split(language == "r")
    if language == "python":
        load("python").main(cells, events, load)
    elif language in ("javascript", "typescript"):
        load_node(language, cells, events)
    else:
        load(language).main(cells, events, load)


def load_node(language, cells, events):
    """Node becomes the kernel: it finds its two descriptors by number."""
    import fcntl

    for fd in (cells, events):
        fcntl.fcntl(fd, fcntl.F_SETFD, 0)
    program = os.path.join(HERE, "javascript.cjs")
    os.execvp("node", ["node", "--experimental-vm-modules", "--no-warnings", program, language, str(cells), str(events)])


if __name__ == "__main__":
    main(sys.argv[1])
