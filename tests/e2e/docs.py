"""Runs the command blocks of README.md and the pages in docs, each page in a shell of its own. Run by tests/e2e/docs_test.

A block is fenced or indented; it is one of commands when a line of it begins with a program of PROGRAMS. Whatever follows a command and is
none is what it prints: '…' stands for any text, and a number for any number. A command must end with 0; curl fails for an HTTP status from
400 on. What cannot run here is in the table `docs_rows.py` with the reason; a row that fits no command is a failure, too."""

import os
import re
import signal
import subprocess
import sys
import time

import docs_rows
from harness import check, finish

PROGRAMS = "cove curl make sudo npm node tar export systemctl git tests/run"
COMMAND = re.compile(r"\$ |(?:%s)(?: |$)|[A-Z][A-Z0-9_]*=[^ ]" % PROGRAMS.replace(" ", "|"))
# Programs that change the host: each needs a row with a reason, and is none here should a row be missing.
HARMFUL = "apt dpkg git make rm systemctl systemd-sysusers systemd-tmpfiles tools/deps"
LONG = 60  # seconds that one command may take


def blocks(text):
    """(number of the first line, lines) of every block of a page."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        first, block = at, []
        if lines[at].startswith("```"):
            at = first = at + 1
            while not lines[at].startswith("```"):
                block.append(lines[at])
                at += 1
        else:
            while at < len(lines) and (lines[at].startswith("    ") or block and not lines[at] and lines[at + 1:] and lines[at + 1].startswith("    ")):
                block.append(lines[at][4:])
                at += 1
        if block:
            yield first + 1, block
        at += not block or at < len(lines) and lines[at].startswith("```")


def is_whole(text):
    """Whether bash would take it as it is, or waits for more lines."""
    return not text.endswith("\\") and subprocess.run(["bash", "-nc", text], stderr=subprocess.DEVNULL).returncode == 0


def commands(page):
    """[number of the line, command, what it prints] of a page."""
    found = []
    for number, block in blocks(open(page).read()):
        if not any(COMMAND.match(line) for line in block):
            continue
        prompts, open_text = any(line.startswith("$ ") for line in block), ""
        for i, line in enumerate(block):
            if open_text:
                found[-1][1] += "\n" + line
                open_text = "" if is_whole(found[-1][1]) else found[-1][1]
            elif line.startswith("$ ") or not prompts and COMMAND.match(line):
                found.append([number + i, line.removeprefix("$ "), ""])
                open_text = "" if is_whole(found[-1][1]) else found[-1][1]
            elif found and line and not line.startswith("#"):
                found[-1][2] += line + "\n"
    return found


class Shell:
    """A bash that keeps variables and directory from command to command."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, stdin=subprocess.PIPE, text=True, start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.send("curl() { command curl --fail-with-body \"$@\"; }; sudo() { \"$@\"; }")
        for program in HARMFUL.split():
            self.send("%s() { echo '%s is not for tests' >&2; return 1; }" % (program, program))

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def run(self, text, until=None):
        """(exit code, output); until: ended by us as soon as the output is like this."""
        self.count += 1
        out, done = ("%s/.out.%d" % (self.folder, self.count), "%s/.done.%d" % (self.folder, self.count))
        if until:
            text = "{ %s\n} &\nwait $!" % text
        self.send("{ %s\n} >%s 2>&1 </dev/null; echo $? >%s.new; mv %s.new %s" % (text, out, done, done, done))
        end = time.monotonic() + LONG
        while not os.path.exists(done):
            if time.monotonic() > end or self.process.poll() is not None:
                return "no end after %d s" % LONG, open(out).read() if os.path.exists(out) else ""
            if until and os.path.exists(out) and re.search(until, open(out, errors="replace").read()):
                self.interrupt()
                until = None
            time.sleep(0.01)
        return open(done).read().strip(), open(out, errors="replace").read()

    def interrupt(self):
        """Ends what runs, and leaves the shell."""
        group = os.getpgid(self.process.pid)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getpgid(int(pid)) == group and int(pid) != self.process.pid:
                    os.kill(int(pid), signal.SIGTERM)
            except ProcessLookupError:
                pass

    def end(self):
        self.interrupt()
        self.process.stdin.close()
        self.process.wait(10)


def like(want):
    """What a page says a command prints, as a pattern."""
    out = re.escape(want.strip())
    out = re.sub(r"(?:\\ )?…(?:\\ )?", ".*", out)
    out = re.sub(r"\d+", r"\\d+", out)
    return re.sub(r"(?:\\\n|\\ |\s)+", r"\\s*", out)


def here(text):
    for was, now in docs_rows.everywhere(os.environ):
        text = re.sub(was, now, text)
    return text


def run_page(page, rows, used):
    folder = os.path.join(os.environ["TMP_DOCS"], page.replace("/", "_"))
    os.mkdir(folder)
    os.environ["PAGE"] = os.path.abspath(page)
    shell = Shell(folder)
    prepared = shell.run(here(docs_rows.BEFORE.get(page, "true")))
    if prepared[0] != "0":
        check("%s: what comes before its commands" % page, False, prepared)
    for number, command, prints in commands(page):
        name = "%s:%d: %s" % (page, number, " ".join(command.split("#")[0].split())[:100])
        row = next((r for r in rows if r.page == page and re.search(r.fits, command)), None)
        if row:
            used.add(row)
        if row and row.reason:
            print("# not run, %s: %s" % (row.reason, name))
            continue
        text = here(re.sub(row.fits, row.instead, command) if row and row.instead is not None else command)
        if row and row.before:
            shell.run(here(row.before))
        begun = time.monotonic()
        code, output = shell.run(text, row and row.until)
        if time.monotonic() - begun > 2:
            print("# %.1f s: %s" % (time.monotonic() - begun, name))
        good = re.search(row.until, output) is not None if row and row.until else code == "0"
        check(name, good, "exit %s: %s" % (code, output))
        if good and prints and not (row and not row.prints):
            check("%s:%d prints what the page says" % (page, number), re.search(like(prints), output, re.S), "%s, not %s" % (output, prints))
    shell.end()
    subprocess.run(["cove", "kill", "--all"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run("cove tenant rm team-a; cove volume ls --json | jq -r '.[].name' | xargs -rn1 cove volume rm", shell=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def main():
    only, used = sys.argv[1:], set()
    pages = ["README.md", "CONTRIBUTING.md", "examples/README.md"] + sorted("docs/" + f for f in os.listdir("docs") if f.endswith(".md"))
    for page in pages:
        if not only or page in only:
            run_page(page, docs_rows.ROWS, used)
    for row in docs_rows.ROWS:
        if row not in used and (not only or row.page in only):
            check("%s has a command like '%s'" % (row.page, row.fits), False, "the row of tests/e2e/docs_rows.py is not needed")


main()
finish()
