"""The R kernel: one R (r.R) that lives as long as the context, and this process, which writes its events as JSON.

R prints straight into the pipes of the pump. When it ends, by quit() or by the kernel's hand, the next cell gets a new one."""

import base64
import json
import os
import signal

TAKE, TELL = 9, 8


def hex_of(text):
    return text.encode("utf-8", "replace").hex() or "-"


def text_of(digits):
    return "" if digits == "-" else bytes.fromhex(digits).decode("utf-8", "replace")


class R:
    def __init__(self):
        take, self.give = os.pipe()
        hear, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for fd, wanted in ((take, TAKE), (tell, TELL)):
                os.dup2(fd, wanted)
            program = os.path.join(os.path.dirname(__file__), "r.R")
            os.execvp("Rscript", ["Rscript", "--no-save", "--no-restore", "--no-init-file", program])
        os.close(take)
        os.close(tell)
        self.hear = os.fdopen(hear, "rb")

    def run(self, cell):
        """What it tells of a cell, word by word; at the end of R itself, its exit status and nothing more."""
        env = [n + ":" + hex_of(v) for n, v in (cell.get("env") or {}).items() if n.isidentifier()]
        data = (" ".join([hex_of(cell["code"])] + env) + "\n").encode("ascii")
        try:
            while data:
                data = data[os.write(self.give, data):]
        except BrokenPipeError:
            pass
        for line in self.hear:
            words = line.decode("ascii", "replace").split()
            if words == ["D"]:
                return
            yield words
        _, status = os.waitpid(self.pid, 0)
        os.close(self.give)
        yield ["X", str(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))]


class Kernel:
    def __init__(self, cells, events):
        self.cells = os.fdopen(cells, "rb")
        self.events = events
        self.r = None
        self.count = 0

    def emit(self, **event):
        data = (json.dumps(event, separators=(",", ":")) + "\n").encode("ascii")
        while data:
            data = data[os.write(self.events, data):]

    def result(self, main, **data):
        self.emit(type="result", is_main_result=main, data=data)

    def plot(self, path):
        with open(path, "rb") as file:
            png = base64.b64encode(file.read()).decode("ascii")
        os.unlink(path)
        self.result(False, **{"image/png": png})

    def told(self, kind, *words):
        words = [text_of(w) if kind != "X" else w for w in words]
        if kind in "VM":
            self.result(kind == "M", **{"text/plain": words[0]})
        elif kind == "P":
            self.plot(words[0])
        elif kind == "E":
            self.emit(type="error", name=words[0], value=words[1], traceback=words[2])
        elif kind == "I":
            self.emit(type="error", name="KeyboardInterrupt", value="", traceback="the cell was interrupted")
        elif kind == "X":
            self.r = None
            self.emit(type="error", name="ExitCode", value=words[0],
                      traceback="R ended with exit code %s: its variables are gone" % words[0])

    def serve(self):
        signal.signal(signal.SIGINT, lambda number, frame: None)  # R hears it, too, and answers
        for line in self.cells:
            cell = json.loads(line)
            self.count += 1
            self.emit(type="begin", id=cell["id"], execution_count=self.count)
            self.r = self.r or R()
            for words in self.r.run(cell):
                self.told(*words)
            self.emit(type="end", id=cell["id"])


def main(cells, events, load):
    Kernel(cells, events).serve()
