#include "agent/proc/tree.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fields of /proc/<pid>/stat between pgrp and utime. */
#define STAT_SKIPPED 8

/* utime, stime, cutime, cstime, priority, nice, num_threads: what stands in the text up to them is digits, signs and spaces. */
static void parse_rest(const char *text, struct tree_node *node)
{
    uint64_t field[7] = { 0 };

    for (int i = 0; i < STAT_SKIPPED && text; i++)
        text = strchr(text + 1, ' ');
    for (int i = 0; i < 7 && text; i++) {
        char *end;

        field[i] = strtoull(text, &end, 10);
        text = *end == ' ' ? end : NULL;
    }
    node->own_ticks = field[0] + field[1];
    node->child_ticks = field[2] + field[3];
    node->dead = node->dead && field[6] <= 1;
}

/* Decimal digits up to `end`, as a pid. */
static const char *parse_pid(const char *text, pid_t *ret)
{
    long value = 0;

    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (*text - '0');
        if (value > INT_MAX)
            return NULL;
    }
    *ret = (pid_t) value;
    return text;
}

bool tree_parse_stat(const char *text, struct tree_node *ret)
{
    struct tree_node node = { .pid = 0 };
    const char *at = parse_pid(text, &node.pid);
    const char *close;

    /* The name may hold anything, parentheses included; what follows its last one cannot. */
    if (!at || strncmp(at, " (", 2) != 0)
        return false;
    close = strrchr(at, ')');
    if (!close || close[1] != ' ' || !close[2] || close[3] != ' ')
        return false;
    node.dead = close[2] == 'Z';
    at = parse_pid(close + 4, &node.ppid);
    if (!at || *at != ' ' || !(at = parse_pid(at + 1, &node.pgrp)))
        return false;
    if (*at == ' ')
        parse_rest(at, &node);
    *ret = node;
    return true;
}

static bool read_node(int proc_fd, const char *name, struct tree_node *ret)
{
    char path[32], text[512];

    (void) snprintf(path, sizeof path, "%.16s/stat", name);
    return io_read_text(proc_fd, path, text, sizeof text) > 0 && tree_parse_stat(text, ret);
}

bool tree_node_of(pid_t pid, struct tree_node *ret)
{
    char name[24];

    (void) snprintf(name, sizeof name, "/proc/%d", (int) pid);
    return read_node(AT_FDCWD, name, ret);
}

static int by_pid(const void *a, const void *b)
{
    const struct tree_node *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct tree_node *find(const struct tree *tree, pid_t pid)
{
    struct tree_node key = { .pid = pid };

    return bsearch(&key, tree->nodes, tree->count, sizeof key, by_pid);
}

/* Up from a node until the root, a process known to be below it, or the top. The bound on the steps
 * is for a snapshot with a circle in it: pids can be reused while it is taken. */
static bool is_below(const struct tree *tree, const struct tree_node *node, pid_t root)
{
    for (size_t steps = 0; node && steps <= tree->count; steps++) {
        if (node->ppid == root || node->below)
            return true;
        node = find(tree, node->ppid);
    }
    return false;
}

int tree_read(struct tree *ret, pid_t root)
{
    auto_dir DIR *dir = opendir("/proc");
    struct tree tree = { .nodes = NULL };
    size_t room = 0;

    *ret = tree;
    if (!dir)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (tree.count == room) {
            size_t more = room ? room * 2 : 32;
            struct tree_node *nodes = realloc(tree.nodes, more * sizeof *nodes);

            if (!nodes) {
                free(tree.nodes);
                return -1;
            }
            tree.nodes = nodes;
            room = more;
        }
        if (read_node(dirfd(dir), entry->d_name, &tree.nodes[tree.count]))
            tree.count++;
    }
    if (tree.count)
        qsort(tree.nodes, tree.count, sizeof *tree.nodes, by_pid);
    for (size_t i = 0; i < tree.count; i++)
        tree.nodes[i].below = is_below(&tree, &tree.nodes[i], root);
    *ret = tree;
    return 0;
}

uint64_t tree_cpu_ms(const struct tree *tree, pid_t root)
{
    uint64_t ticks = 0;
    long per_second = sysconf(_SC_CLK_TCK);

    for (size_t i = 0; i < tree->count; i++) {
        const struct tree_node *node = &tree->nodes[i];

        if (node->below)
            ticks += node->own_ticks + node->child_ticks;
        else if (node->pid == root)
            ticks += node->child_ticks;
    }
    return ticks * 1000 / (uint64_t) (per_second > 0 ? per_second : 100);
}

void tree_done(struct tree *tree)
{
    free(tree->nodes);
    tree->nodes = NULL;
    tree->count = 0;
}
