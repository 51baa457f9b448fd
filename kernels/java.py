"""The java kernel: becomes a Java program that drives the JDK's own JShell (Java.java, run from its source)."""

import fcntl
import os


def main(cells, events, load):
    os.dup2(cells, 0)  # Java can use the three that every program has, and open others by name if they are its own
    fcntl.fcntl(events, fcntl.F_SETFD, 0)
    program = os.path.join(os.path.dirname(__file__), "Java.java")
    os.execvp("java", ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-modules", "jdk.jshell", program,
                       str(events)])
