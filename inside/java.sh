#!/bin/sh
# java for sandboxes. The JVM asks the kernel for memory and processors, which says those of the host, and makes its heap too
# big for the sandbox. What the caller says comes later and wins.
read -r memory </sys/fs/cgroup/memory.max
read -r cores </sys/devices/system/cpu/online
case $memory in
'' | *[!0-9]*) ;;
*) set -- "-XX:MaxRAM=$memory" "$@" ;;
esac
cores=${cores#0-} # "0" for one, "0-3" for four
case $cores in
'' | *[!0-9]*) ;;
*) set -- "-XX:ActiveProcessorCount=$((cores + 1))" "$@" ;;
esac
exec /usr/bin/java "$@"
