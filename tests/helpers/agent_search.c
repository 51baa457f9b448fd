/* The agent's glob, grep, watch, ports and dial. Run by tests/e2e/agent_files_test. */
#include "drive.h"

#include "base/sanitized.h"
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#define REQ(...) ((struct agent_request){ __VA_ARGS__ })

static char found[200000];

static void note_path(const struct agent_reply *item)
{
    size_t used = strlen(found);

    (void) snprintf(found + used, sizeof found - used, "%s ", item->path + strlen(dir) + 1);
}

static void note_line(const struct agent_reply *item)
{
    size_t used = strlen(found);

    (void) snprintf(found + used, sizeof found - used, "%s%c%llu%c%.*s ",
                    strrchr(item->path, '/') + 1, item->flags & AGENT_CONTEXT ? '-' : ':',
                    (unsigned long long) item->line, item->flags & AGENT_BINARY ? 'B' : ':',
                    (int) item->data.len, (const char *) item->data.data);
}

/* Paths that match, sorted by nothing: callers look with has(). */
static uint64_t glob(const char *pattern, uint32_t flags)
{
    uint64_t count = 0;

    found[0] = '\0';
    CHECK_INT(items(REQ(.op = AGENT_GLOB, .path = "g", .pattern = pattern, .flags = flags), NOBODY,
                    note_path, &count),
              ERR_NONE);
    return count;
}

static bool has(const char *path)
{
    char word[300];
    const char *hit;

    (void) snprintf(word, sizeof word, "%s ", path);
    hit = strstr(found, word);
    return hit && (hit == found || hit[-1] == ' ');
}

static void make_tree(void)
{
    static const char *const dirs[] = { "g", "g/src", "g/src/deep", "g/.git", "g/closed" };
    static const char *const files[] = { "g/a.c",          "g/b.h",      "g/src/a.c",  "g/src/x.cc",
                                         "g/src/deep/z.c", "g/.git/c.c", "g/.hidden.c" };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        (void) mkdir(at(dirs[i]), 0755);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        make_file(at(files[i]), "int main(void)\n", 0644);
    IGNORE(symlink("src", at("g/link")) < 0);
    (void) mkfifo(at("g/fifo.c"), 0644);
    (void) chmod(at("g/closed"), 0700);
}

static void remove_tree(void)
{
    (void) ask(REQ(.op = AGENT_REMOVE, .path = "g", .flags = AGENT_RECURSIVE), ROOT);
}

static void a_bad_pattern_says_what_is_wrong_with_it(void)
{
    make_tree();
    CHECK_INT(items(REQ(.op = AGENT_GLOB, .path = "g", .pattern = "../*"), NOBODY, NULL, NULL),
              ERR_INVALID);
    CHECK(strstr(last_error, "'..' is not followed"));
    CHECK_INT(items(REQ(.op = AGENT_GLOB, .path = "none", .pattern = "*"), NOBODY, NULL, NULL),
              ERR_NO_PATH);
    CHECK_INT(items(REQ(.op = AGENT_GLOB, .path = "g/a.c", .pattern = "*"), NOBODY, NULL, NULL),
              ERR_NOT_DIR);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "a(b"), NOBODY, NULL, NULL),
              ERR_INVALID);
    CHECK(strstr(last_error, "pattern: ") && strlen(last_error) > 12);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "none", .pattern = "a"), NOBODY, NULL, NULL),
              ERR_NO_PATH);
    remove_tree();
}

static void globs_find_what_a_shell_would(void)
{
    make_tree();
    CHECK_INT(glob("*.c", 0), 2);
    CHECK(has("g/a.c") && has("g/fifo.c"));
    CHECK_INT(glob("**/*.c", 0), 4);
    CHECK(has("g/a.c") && has("g/src/a.c") && has("g/src/deep/z.c") && !has("g/link/a.c"));
    CHECK_INT(glob("**/*.c", AGENT_HIDDEN), 6);
    CHECK(has("g/.git/c.c") && has("g/.hidden.c"));
    CHECK_INT(glob(".*.c", 0), 1);
    CHECK_INT(glob(".git/*", 0), 1);
    CHECK_INT(glob("{a,b}.[ch]", 0), 2);
    CHECK_INT(glob("{src,g}/**/{a,z}.c", 0), 2);
    CHECK_INT(glob("link/*.c", 0), 1); /* a link that is named is followed */
    CHECK(has("g/link/a.c"));
    CHECK_INT(glob("**/", 0), 3);
    CHECK(has("g/src") && has("g/src/deep") && has("g/closed"));
    CHECK_INT(glob("src/**", 0), 4);
    CHECK_INT(glob("?.c", 0), 1);
    CHECK_INT(glob("nothing*", 0), 0);
    CHECK_INT(glob("{a.c,a.*,?.c,**/a.c}", 0), 2); /* nothing twice */
    CHECK_INT(items(REQ(.op = AGENT_GLOB, .path = "/tmp", .pattern = at("g/*.h")), NOBODY, NULL,
                    &(uint64_t){ 0 }),
              ERR_NONE);
    CHECK_INT(
        items(REQ(.op = AGENT_GLOB, .path = "g", .pattern = "**", .limit = 3), NOBODY, NULL, NULL),
        ERR_NONE);
    CHECK_INT(once.reply.flags, AGENT_TRUNCATED);
    CHECK_INT(once.reply.count, 3);
    remove_tree();
}

static uint32_t grep(struct agent_request r)
{
    r.op = AGENT_GREP;
    found[0] = '\0';
    return items(r, NOBODY, note_line, NULL);
}

static void grep_finds_lines_with_their_neighbours(void)
{
    (void) mkdir(at("g"), 0755);
    make_file(at("g/t"), "one\ntwo\nthree\nfour\nfive\nsix", 0644);
    CHECK_INT(grep(REQ(.path = "g", .pattern = "^t.*e$")), ERR_NONE);
    CHECK_STR(found, "t:3:three ");
    CHECK_INT(grep(REQ(.path = "g/t", .pattern = "SIX", .flags = AGENT_IGNORE_CASE)), ERR_NONE);
    CHECK_STR(found, "t:6:six ");
    CHECK_INT(
        grep(REQ(.path = "g", .pattern = "three|four", .context_before = 1, .context_after = 1)),
        ERR_NONE);
    CHECK_STR(found, "t-2:two t:3:three t:4:four t-5:five ");
    CHECK_INT(grep(REQ(.path = "g", .pattern = "o", .limit = 2)), ERR_NONE);
    CHECK_INT(once.reply.flags, AGENT_TRUNCATED);
    CHECK_STR(found, "t:1:one t:2:two ");
    CHECK_INT(grep(REQ(.path = "g", .pattern = ".*", .flags = AGENT_FIXED)), ERR_NONE);
    CHECK_STR(found, "");
    make_file(at("g/u"), "a.*b (x\n", 0644);
    CHECK_INT(grep(REQ(.path = "g", .pattern = ".*B (X", .flags = AGENT_FIXED | AGENT_IGNORE_CASE)),
              ERR_NONE);
    CHECK_STR(found, "u:1:a.*b (x ");
    CHECK_INT(once.reply.total, 2);
    remove_tree();
}

static void grep_chooses_files(void)
{
    uint64_t count;

    make_tree();
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "main"), NOBODY, NULL, &count),
              0);
    CHECK_INT(count, 5);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "main", .flags = AGENT_HIDDEN),
                    NOBODY, NULL, &count),
              ERR_NONE);
    CHECK_INT(count, 7);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "main", .include = "*.{h,cc}"),
                    NOBODY, NULL, &count),
              ERR_NONE);
    CHECK_INT(count, 2);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "main", .include = "src/**/*.c"),
                    NOBODY, NULL, &count),
              ERR_NONE);
    CHECK_INT(count, 2);
    found[0] = '\0';
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "i", .flags = AGENT_FILES_ONLY,
                        .include = "b.h"),
                    NOBODY, note_path, &count),
              ERR_NONE);
    CHECK_STR(found, "g/b.h ");
    remove_tree();
}

static void grep_says_only_that_a_binary_file_matches(void)
{
    int fd;

    (void) mkdir(at("g"), 0755);
    make_file(at("g/b"), "", 0644);
    fd = open(at("g/b"), O_WRONLY | O_CLOEXEC);
    CHECK(write(fd, "x\0y\nneedle\nneedle\n", 18) == 18);
    (void) close(fd);
    CHECK_INT(grep(REQ(.path = "g", .pattern = "needle")), ERR_NONE);
    CHECK_STR(found, "b:0B ");
    remove_tree();
}

static uint32_t shown_len;
static uint64_t shown_column;
static bool shown_hit;

static void note_shown(const struct agent_reply *item)
{
    shown_len = item->data.len;
    shown_column = item->column;
    shown_hit = memmem(item->data.data, item->data.len, "needle", 6);
}

static void grep_finds_and_cuts_in_lines_of_any_length(void)
{
    enum { LINE = 3000000 };
    static const size_t places[] = { 0, 65530, 65534, 61438, 61440, 1000000, LINE - 6 };
    char *line = malloc(LINE + 1);
    uint64_t count;

    (void) mkdir(at("g"), 0755);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        memset(line, 'x', LINE);
        memcpy(line + places[i], "needle", 6);
        line[LINE] = '\0';
        make_file(at("g/long"), line, 0644);
        CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "n+eedle"), NOBODY,
                        note_shown, &count),
                  ERR_NONE);
        CHECK_INT(count, 1);
        CHECK(shown_hit && shown_len <= 4096);
        CHECK_INT(shown_column, places[i] + 1);
    }
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "^n"), NOBODY, NULL, &count), 0);
    CHECK_INT(count, 0);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = "needle$"), NOBODY, NULL, &count),
              0);
    CHECK_INT(count, 1);
    free(line);
    remove_tree();
}

static void a_pattern_that_grows_without_end_is_refused(void)
{
    const char *huge = "(((((a{1,200}){1,200}){1,200}){1,200}){1,200})";

#if ADDRESS_SANITIZED
    SKIP("a sanitizer's memory has no limit");
    (void) huge;
#else
    (void) mkdir(at("g"), 0755);
    CHECK_INT(items(REQ(.op = AGENT_GREP, .path = "g", .pattern = huge), NOBODY, NULL, NULL),
              ERR_INVALID);
    remove_tree();
#endif
}

/* Watching. */
static struct drive watch; /* `once` is for what is done meanwhile */

static void watch_start(const char *path, uint32_t flags)
{
    drive_start(&watch, REQ(.op = AGENT_WATCH, .path = path, .flags = flags), NOBODY);
    CHECK_INT(drive_next(&watch), FRAME_REPLY);
}

/* Collects events until nothing comes for 200 ms: "create:/w/f " and so on. */
static void watch_collect(void)
{
    struct pollfd p = { .fd = watch.sock, .events = POLLIN };

    found[0] = '\0';
    while (poll(&p, 1, 200) > 0) {
        size_t used = strlen(found);
        int type = drive_next(&watch);

        if (type == FRAME_END)
            (void) snprintf(found + used, sizeof found - used, "end ");
        if (type != FRAME_ITEM)
            return;
        (void) snprintf(found + used, sizeof found - used, "%s:%s%s%s ",
                        agent_event_name(watch.reply.event),
                        watch.reply.path ? watch.reply.path + strlen(dir) + 1 : "",
                        watch.reply.target ? ">" : "",
                        watch.reply.target ? watch.reply.target + strlen(dir) + 1 : "");
    }
}

static unsigned occurs(const char *word)
{
    unsigned count = 0;

    for (const char *hit = found; (hit = strstr(hit, word)); hit++)
        count++;
    return count;
}

static void a_watch_tells_what_happens_to_files(void)
{
    (void) mkdir(at("w"), 0755);
    watch_start("w", 0);
    make_file(at("w/f"), "text", 0644);
    watch_collect();
    CHECK_STR(found, "create:w/f write:w/f chmod:w/f ");
    (void) rename(at("w/f"), at("w/g"));
    watch_collect();
    CHECK_STR(found, "rename:w/f>w/g ");
    (void) rename(at("w/g"), at("out"));
    watch_collect();
    CHECK_STR(found, "rename:w/g ");
    (void) rename(at("out"), at("w/in"));
    watch_collect();
    CHECK_STR(found, "rename:>w/in ");
    (void) unlink(at("w/in"));
    (void) mkdir(at("w/sub"), 0755);
    make_file(at("w/sub/f"), "", 0644);
    watch_collect();
    CHECK_STR(found, "remove:w/in create:w/sub "); /* not recursive */
    drive_end(&watch);
    (void) unlink(at("w/sub/f"));
    (void) rmdir(at("w/sub"));
    (void) rmdir(at("w"));
}

static void a_write_of_the_agent_is_one_write_event(void)
{
    (void) mkdir(at("w"), 0755);
    (void) chmod(at("w"), 0777);
    watch_start("w", 0);
    CHECK_INT(put("w/f", 0, "text", NOBODY), ERR_NONE);
    watch_collect();
    CHECK_STR(found, "create:w/f write:w/f ");
    CHECK_INT(put("w/f", 0, "other", NOBODY), ERR_NONE);
    watch_collect();
    /* Emptied, then written. The kernel makes one event of two equal ones that nobody has read yet. */
    CHECK(occurs("write:w/f ") >= 1 && occurs(":") == occurs("write:w/f "));
    drive_end(&watch);
    (void) unlink(at("w/f"));
    (void) rmdir(at("w"));
}

static void a_recursive_watch_includes_what_comes_later(void)
{
    (void) mkdir(at("w"), 0755);
    (void) mkdir(at("w/old"), 0755);
    watch_start("w", AGENT_RECURSIVE);
    make_file(at("w/old/f"), "", 0644);
    watch_collect();
    CHECK(occurs("create:w/old/f ") == 1);
    (void) mkdir(at("w/a"), 0755);
    (void) mkdir(at("w/a/b"), 0755);
    (void) mkdir(at("w/a/b/c"), 0755);
    make_file(at("w/a/b/c/f"), "", 0644);
    watch_collect();
    CHECK(occurs("create:w/a ") == 1 && occurs("create:w/a/b ") == 1);
    CHECK(occurs("create:w/a/b/c ") == 1 && occurs("create:w/a/b/c/f ") == 1);
    make_file(at("w/a/b/c/g"), "", 0644);
    watch_collect();
    CHECK(occurs("create:w/a/b/c/g ") == 1);
    (void) rename(at("w/a/b"), at("w/old/b2")); /* moved inside: new paths at once */
    make_file(at("w/old/b2/c/h"), "", 0644);
    watch_collect();
    CHECK(occurs("rename:w/a/b>w/old/b2 ") == 1 && occurs("create:w/old/b2/c/h ") == 1);
    (void) rename(at("w/old/b2"), at("away")); /* moved out: silent from now on */
    watch_collect();
    CHECK_STR(found, "rename:w/old/b2 ");
    make_file(at("away/c/i"), "", 0644);
    watch_collect();
    CHECK_STR(found, "");
    (void) rename(at("away"), at("w/back")); /* and in again, with all that is in it */
    watch_collect();
    CHECK(occurs("rename:>w/back ") == 1 && occurs("create:w/back/c/i ") == 1);
    make_file(at("w/back/c/j"), "", 0644);
    watch_collect();
    CHECK(occurs("create:w/back/c/j ") == 1);
    drive_end(&watch);
    (void) ask(REQ(.op = AGENT_REMOVE, .path = "w", .flags = AGENT_RECURSIVE), ROOT);
}

static void a_tree_made_at_once_is_told_of_once_and_whole(void)
{
    char path[600], want[700];
    int len, missing = 0, twice = 0;

    (void) mkdir(at("w"), 0755);
    watch_start("w", AGENT_RECURSIVE);
    len = snprintf(path, sizeof path, "%s", at("w"));
    for (int i = 0; i < 100; i++) {
        len += snprintf(path + len, sizeof path - (size_t) len, "/d");
        (void) mkdir(path, 0755);
        make_file(strcat(strcpy(want, path), "/f"), "", 0644);
    }
    watch_collect();
    len = snprintf(path, sizeof path, "w");
    for (int i = 0; i < 100; i++) {
        const char *hit;

        len += snprintf(path + len, sizeof path - (size_t) len, "/d");
        (void) snprintf(want, sizeof want, "create:%s/f ", path);
        hit = strstr(found, want);
        missing += !hit;
        twice += hit && strstr(hit + 1, want);
    }
    CHECK_INT(missing, 0);
    CHECK_INT(twice, 0);
    drive_end(&watch);
    (void) ask(REQ(.op = AGENT_REMOVE, .path = "w", .flags = AGENT_RECURSIVE), ROOT);
}

static void an_overflow_is_told_and_the_watch_goes_on(void)
{
    bool overflow = false;
    int fd;

    (void) mkdir(at("w"), 0755);
    watch_start("w", AGENT_RECURSIVE);
    (void) kill(watch.pid, SIGSTOP);
    fd = open(at("w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 20000; i++) {
        char name[32];

        (void) snprintf(name, sizeof name, "f%d", i % 100);
        (void) close(openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        (void) unlinkat(fd, name, 0);
    }
    (void) close(fd);
    (void) mkdir(at("w/lost"), 0755); /* its event does not fit any more */
    (void) kill(watch.pid, SIGCONT);
    while (!overflow && drive_next(&watch) == FRAME_ITEM)
        overflow = watch.reply.event == EVENT_OVERFLOW;
    CHECK(overflow);
    make_file(at("w/lost/f"), "", 0644);
    watch_collect();
    CHECK(occurs("create:w/lost/f ") == 1);
    drive_end(&watch);
    (void) ask(REQ(.op = AGENT_REMOVE, .path = "w", .flags = AGENT_RECURSIVE), ROOT);
}

static void a_watch_ends_with_its_caller_or_its_subject(void)
{
    (void) mkdir(at("w"), 0755);
    watch_start("w", AGENT_RECURSIVE);
    own_close(&watch.sock);
    CHECK(drive_ends_within(&watch, 2000));
    watch_start("w", AGENT_RECURSIVE);
    (void) rmdir(at("w"));
    watch_collect();
    CHECK(strstr(found, "remove:w end "));
    drive_end(&watch);
    make_file(at("single"), "", 0644);
    watch_start("single", 0);
    IGNORE(truncate(at("single"), 3) < 0);
    watch_collect();
    CHECK_STR(found, "write:single ");
    drive_end(&watch);
    (void) unlink(at("single"));
}

/* Ports. */
static int listen_on(int family, uint16_t *ret_port)
{
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    bool six = family == AF_INET6;
    struct sockaddr *address = six ? (struct sockaddr *) &v6 : (struct sockaddr *) &v4;
    socklen_t len = six ? sizeof v6 : sizeof v4;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, address, len) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, address, &len) < 0) {
        own_close(&fd);
        return -1;
    }
    *ret_port = ntohs(six ? v6.sin6_port : v4.sin_port);
    return fd;
}

static void note_port(const struct agent_reply *item)
{
    size_t used = strlen(found);

    (void) snprintf(found + used, sizeof found - used, "%s:%u:%s:%u ", item->address, item->port,
                    item->program ? item->program : "?", item->pid);
}

static int listener;

/* A worker has no descriptor but its connection. */
static void close_listener(void)
{
    (void) close(listener);
}

static void listening_ports_are_listed_with_their_program(void)
{
    uint16_t port;
    char want[100];

    listener = listen_on(AF_INET, &port);
    CHECK(listener >= 0);
    once.prepare = close_listener;
    found[0] = '\0';
    CHECK_INT(items(REQ(.op = AGENT_PORTS), ROOT, note_port, NULL), ERR_NONE);
    (void) snprintf(want, sizeof want, "127.0.0.1:%u:agent_search:%d ", port, getpid());
    CHECK(strstr(found, want));
    found[0] = '\0';
    CHECK_INT(items(REQ(.op = AGENT_PORTS), NOBODY, note_port, NULL), ERR_NONE);
    (void) snprintf(want, sizeof want, "127.0.0.1:%u:?:0 ", port); /* not this user's to look at */
    CHECK(strstr(found, want));
    once.prepare = NULL;
    own_close(&listener);
}

static void a_port_without_a_listener_is_told(void)
{
    uint16_t port;
    int fd = listen_on(AF_INET, &port);
    char want[64];

    own_close(&fd);
    CHECK_INT(ask(REQ(.op = AGENT_DIAL, .port = port), NOBODY), ERR_NO_PORT);
    (void) snprintf(want, sizeof want, "nothing listens on port %u", port);
    CHECK_STR(last_error, want);
}

/* Sends a MiB both ways at once, closes each half, and sees both ends. */
static void relay_check(int family)
{
    enum { SIZE = 1 << 20 };
    static char out[SIZE], in[SIZE];
    uint16_t port = 0;
    int fd = listen_on(family, &port), peer;
    pid_t writer;

    if (fd < 0) {
        SKIP("no listener: %s", strerror(errno));
        return;
    }
    memset(out, 'o', sizeof out);
    once.early = "early ";
    once.early_len = 6;
    drive_start(&once, REQ(.op = AGENT_DIAL, .port = port), NOBODY);
    once.early_len = 0;
    peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK_INT(drive_next(&once), FRAME_REPLY);
    writer = fork();
    if (writer == 0) {
        _exit(io_write_all(once.sock, out, sizeof out) < 0 || shutdown(once.sock, SHUT_WR) < 0);
    }
    CHECK(recv(peer, in, 6, MSG_WAITALL) == 6 && memcmp(in, "early ", 6) == 0);
    CHECK(recv(peer, in, sizeof in, MSG_WAITALL) == SIZE && memcmp(in, out, SIZE) == 0);
    CHECK(recv(peer, in, 1, 0) == 0); /* the half-close arrived */
    CHECK(io_write_all(peer, out, 1000) == 0);
    CHECK(recv(once.sock, in, 1000, MSG_WAITALL) == 1000);
    own_close(&peer);
    CHECK(recv(once.sock, in, 1, 0) == 0);
    CHECK(drive_ends_within(&once, 5000));
    own_close(&once.sock);
    if (writer > 0)
        (void) waitpid(writer, NULL, 0);
    own_close(&fd);
}

static void a_dialled_port_relays_both_ways_with_half_close(void)
{
    relay_check(AF_INET);
}

static void a_port_of_version_6_alone_is_reached_too(void)
{
    relay_check(AF_INET6);
}

static void a_dialled_port_is_hung_up_when_its_caller_goes(void)
{
    uint16_t port;
    int fd = listen_on(AF_INET, &port), peer;
    char byte;

    drive_start(&once, REQ(.op = AGENT_DIAL, .port = port), NOBODY);
    peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK_INT(drive_next(&once), FRAME_REPLY);
    own_close(&once.sock);
    CHECK(recv(peer, &byte, 1, 0) == 0);
    CHECK(drive_ends_within(&once, 5000)); /* although the server has not closed */
    own_close(&peer);
    own_close(&fd);
}

static const struct check_test tests[] = {
    T(a_bad_pattern_says_what_is_wrong_with_it),
    T(globs_find_what_a_shell_would),
    T(grep_finds_lines_with_their_neighbours),
    T(grep_chooses_files),
    T(grep_says_only_that_a_binary_file_matches),
    T(grep_finds_and_cuts_in_lines_of_any_length),
    T(a_pattern_that_grows_without_end_is_refused),
    T(a_watch_tells_what_happens_to_files),
    T(a_write_of_the_agent_is_one_write_event),
    T(a_recursive_watch_includes_what_comes_later),
    T(a_tree_made_at_once_is_told_of_once_and_whole),
    T(an_overflow_is_told_and_the_watch_goes_on),
    T(a_watch_ends_with_its_caller_or_its_subject),
    T(listening_ports_are_listed_with_their_program),
    T(a_port_without_a_listener_is_told),
    T(a_dialled_port_relays_both_ways_with_half_close),
    T(a_port_of_version_6_alone_is_reached_too),
    T(a_dialled_port_is_hung_up_when_its_caller_goes),
};

int main(int argc, char **argv)
{
    if (drive_setup(argc, argv) < 0)
        return 2;
    return check_run(tests, ARRAY_LEN(tests));
}
