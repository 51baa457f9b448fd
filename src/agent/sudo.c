#include "agent/sudo.h"

#include "agent/core/agent.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char usage[] =
    "usage: sudo [-EHinSs] [-u user] [VAR=value ...] [command [argument ...]]\n"
    "       sudo -v | -k | -l | --help | --version\n"
    "Runs a command as the sandbox's own root, or as another user. There is no password.\n";

/* What a command gets of the caller's environment without -E. */
static const char *const kept[] = { "TERM=", "COLORTERM=", "LANG=",    "LC_",      "LANGUAGE=",
                                    "TZ=",   "NO_COLOR=",  "DISPLAY=", "COLUMNS=", "LINES=" };

static const int forwarded[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP, SIGALRM };

static bool is_assignment(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

    return n > 0 && text[n] == '=' && (text[0] < '0' || text[0] > '9');
}

static int parse_long(const char *name, struct sudo_options *o, struct err *err)
{
    if (strcmp(name, "help") == 0)
        o->help = true;
    else if (strcmp(name, "version") == 0)
        o->version = true;
    else if (strcmp(name, "preserve-env") == 0 || strncmp(name, "preserve-env=", 13) == 0)
        o->preserve_env = true;
    else if (strcmp(name, "login") == 0)
        o->login = true;
    else if (strcmp(name, "shell") == 0)
        o->shell = true;
    else if (strcmp(name, "set-home") == 0)
        o->set_home = true;
    else if (strcmp(name, "list") == 0)
        o->list = true;
    else if (strcmp(name, "validate") == 0)
        o->validate = true;
    else if (strcmp(name, "non-interactive") != 0 && strcmp(name, "stdin") != 0)
        return err_set(err, ERR_USAGE, "unknown option --%.64s", name);
    return 0;
}

/* One letter; 1 when it takes a value. */
static int parse_letter(char letter, struct sudo_options *o, struct err *err)
{
    switch (letter) {
    case 'u':
    case 'g': /* a group, a prompt and a terminal type change nothing here */
    case 'p':
        return 1;
    case 'E':
        o->preserve_env = true;
        return 0;
    case 'i':
        o->login = true;
        return 0;
    case 's':
        o->shell = true;
        return 0;
    case 'H':
        o->set_home = true;
        return 0;
    case 'v':
        o->validate = true;
        return 0;
    case 'l':
        o->list = true;
        return 0;
    case 'k':
    case 'K':
        o->forget = true;
        return 0;
    case 'h':
        o->help = true;
        return 0;
    case 'V':
        o->version = true;
        return 0;
    case 'n':
    case 'S':
        return 0;
    default:
        return err_set(err, ERR_USAGE, "unknown option -%c", letter);
    }
}

/* "-Eu root", "-uroot": letters until one takes the rest or the next argument. */
static int parse_letters(char **argv, int argc, int *at, struct sudo_options *o, struct err *err)
{
    for (const char *c = argv[*at] + 1; *c; c++) {
        int takes = parse_letter(*c, o, err);
        const char *value;

        if (takes < 0)
            return -1;
        if (!takes)
            continue;
        value = c[1] ? c + 1 : *at + 1 < argc ? argv[++*at] : NULL;
        if (!value)
            return err_set(err, ERR_USAGE, "option -%c needs a value", *c);
        if (*c == 'u')
            o->user = value;
        return 0;
    }
    return 0;
}

int sudo_parse(int argc, char **argv, struct sudo_options *ret, struct err *err)
{
    struct sudo_options o = { .user = NULL };
    int at = 1;

    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strncmp(argv[at], "--user=", 7) == 0)
            o.user = argv[at] + 7;
        else if (strcmp(argv[at], "--user") == 0 && at + 1 < argc)
            o.user = argv[++at];
        else if (strncmp(argv[at], "--", 2) == 0 ? parse_long(argv[at] + 2, &o, err) < 0
                                                 : parse_letters(argv, argc, &at, &o, err) < 0)
            return -1;
    }
    o.assignments = argv + at;
    while (at < argc && is_assignment(argv[at])) {
        at++;
        o.assignment_count++;
    }
    o.command = argv + at;
    o.command_count = argc - at;
    if (!o.command_count && !o.login && !o.shell && !o.validate && !o.list && !o.forget &&
        !o.help && !o.version)
        return err_set(err, ERR_USAGE, "no command");
    *ret = o;
    return 0;
}

/* A growing list of texts, as the wire has them. */
struct list {
    char *data;
    uint32_t len;
};

static int list_add(struct list *list, const char *text)
{
    size_t len = strlen(text) + 1;
    char *data = list->len + len <= AGENT_TEXT_MAX ? realloc(list->data, list->len + len) : NULL;

    if (!data)
        return -1;
    memcpy(data + list->len, text, len);
    list->data = data;
    list->len += (uint32_t) len;
    return 0;
}

static void list_done(struct list *list)
{
    free(list->data);
}
#define auto_list __attribute__((cleanup(list_done)))

static bool is_kept(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (strncmp(text, kept[i], strlen(kept[i])) == 0)
            return true;
    return false;
}

static int add_env(struct list *env, const struct sudo_options *o, char **envp)
{
    char text[128], name[USER_NAME_MAX];
    int r = 0;

    for (char **at = envp; *at && r == 0; at++) {
        bool home = strncmp(*at, "HOME=", 5) == 0;

        if (strchr(*at, '=') && (*at)[0] != '=' &&
            (o->preserve_env ? !(home && (o->set_home || o->login)) : is_kept(*at)))
            r = list_add(env, *at);
    }
    if (!user_name_of(AGENT_ETC, getuid(), name, sizeof name))
        (void) snprintf(name, sizeof name, "%u", (unsigned) getuid());
    (void) snprintf(text, sizeof text, "SUDO_USER=%s", name);
    r |= list_add(env, text);
    (void) snprintf(text, sizeof text, "SUDO_UID=%u", (unsigned) getuid());
    r |= list_add(env, text);
    (void) snprintf(text, sizeof text, "SUDO_GID=%u", (unsigned) getgid());
    r |= list_add(env, text);
    for (int i = 0; i < o->assignment_count; i++)
        r |= list_add(env, o->assignments[i]);
    return r;
}

/* For -c of a shell, as sudo does it: everything but plain characters is escaped. */
static char *join_quoted(char **words, int count)
{
    size_t room = 1;
    char *text, *at;

    for (int i = 0; i < count; i++)
        room += 2 * strlen(words[i]) + 1;
    text = at = malloc(room);
    if (!text)
        return NULL;
    for (int i = 0; i < count; i++) {
        for (const char *c = words[i]; *c; c++) {
            bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                         (*c >= '0' && *c <= '9') || strchr("_-$/.=:,", *c) || (*c & 0x80);

            if (!plain)
                *at++ = '\\';
            *at++ = *c;
        }
        *at++ = ' ';
    }
    if (count > 0)
        at--;
    *at = '\0';
    return text;
}

/* -i and -s run the target's shell, with the command if there is one. */
static int add_args(struct list *args, const struct sudo_options *o, const struct user *target)
{
    auto_free char *line = NULL;
    const char *shell = o->shell && !o->login && getenv("SHELL") ? getenv("SHELL") : target->shell;
    int r = 0;

    if (!o->login && !o->shell) {
        for (int i = 0; i < o->command_count; i++)
            r |= list_add(args, o->command[i]);
        return r;
    }
    r |= list_add(args, shell[0] ? shell : "/bin/sh");
    if (o->login)
        r |= list_add(args, "-l");
    if (o->command_count == 0)
        return r;
    line = join_quoted(o->command, o->command_count);
    r |= list_add(args, "-c");
    return line ? r | list_add(args, line) : -1;
}

static int call_agent(struct err *err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(addr.sun_path + 1, BOOT_SUDO_SOCKET, sizeof BOOT_SUDO_SOCKET - 1);
    if (fd < 0 ||
        connect(fd, (struct sockaddr *) &addr,
                (socklen_t) (offsetof(struct sockaddr_un, sun_path) + sizeof BOOT_SUDO_SOCKET)) < 0)
        return errno == ECONNREFUSED
                   ? err_set(err, ERR_NO_ROOT, "this sandbox was made without root")
                   : err_sys(err, errno, "reach the agent");
    return take_fd(&fd);
}

/* Frame and, with its first byte, our stdio. A closed one becomes /dev/null. */
static int send_request(int sock, const struct agent_request *request, struct err *err)
{
    auto_free uint8_t *frame = malloc(FRAME_HEAD + FRAME_REQUEST_MAX);
    ssize_t len, n;
    int fds[CONN_FDS] = { 0, 1, 2 };

    if (!frame)
        return err_set(err, ERR_NO_MEMORY, "no memory");
    for (int i = 0; i < CONN_FDS; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return err_sys(err, errno, "open /dev/null");
    len = agent_request_encode(request, frame + FRAME_HEAD, FRAME_REQUEST_MAX, err);
    if (len < 0)
        return -1;
    frame_head_put(frame, FRAME_REQUEST, (uint32_t) len);
    n = io_send_fds(sock, frame, FRAME_HEAD + (size_t) len, fds,
                    request->op == AGENT_EXEC ? CONN_FDS : 0);
    if (n < 0 || io_write_all(sock, frame + n, FRAME_HEAD + (size_t) len - (size_t) n) < 0)
        return err_sys(err, errno, "ask the agent");
    return 0;
}

static int read_frame(int sock, struct frame_head *head, uint8_t *data, size_t size,
                      struct err *err)
{
    uint8_t bytes[FRAME_HEAD];

    if (io_read_all(sock, bytes, sizeof bytes) < 0)
        return err_sys(err, errno, "hear from the agent");
    if (frame_head_get(bytes, head, err) < 0)
        return -1;
    if (head->len > size)
        return err_set(err, ERR_PROTOCOL, "frame '%s' is too long", frame_name(head->type));
    if (io_read_all(sock, data, head->len) < 0)
        return err_sys(err, errno, "hear from the agent");
    return 0;
}

static void forward_signal(int sock, int signals)
{
    struct signalfd_siginfo info;
    uint8_t frame[FRAME_HEAD + 4];

    if (read(signals, &info, sizeof info) != (ssize_t) sizeof info)
        return;
    frame_head_put(frame, FRAME_SIGNAL, 4);
    frame_put_u32(frame + FRAME_HEAD, info.ssi_signo);
    (void) io_write_all(sock, frame, sizeof frame);
    if (info.ssi_signo == SIGTSTP)
        (void) raise(SIGSTOP); /* the command stopped too; SIGCONT is forwarded later */
}

/* 1 when the command ended, with *ret_code; 0 to continue. */
static int take_frame(int sock, int *ret_code, struct err *err)
{
    uint8_t data[1024];
    struct frame_head head;
    struct agent_reply reply;

    if (read_frame(sock, &head, data, sizeof data, err) < 0 ||
        agent_reply_decode(&reply, data, head.len, err) < 0)
        return -1;
    if (head.type == FRAME_ERROR)
        return err_set(err, (enum err_kind) reply.kind, "%s", reply.message ? reply.message : "");
    if (head.type != FRAME_EXIT)
        return 0;
    *ret_code = reply.ended == EXIT_CODE ? (int) reply.exit_code
                                         : 128 + (int) (reply.signal ? reply.signal : SIGKILL);
    return 1;
}

static int wait_for_end(int sock, int signals, int *ret_code, struct err *err)
{
    struct pollfd polled[2] = { { .fd = sock, .events = POLLIN },
                                { .fd = signals, .events = POLLIN } };
    int r = 0;

    while (r == 0) {
        if (poll(polled, 2, -1) < 0)
            continue;
        if (polled[1].revents)
            forward_signal(sock, signals);
        if (polled[0].revents)
            r = take_frame(sock, ret_code, err);
    }
    return r < 0 ? -1 : 0;
}

static int block_signals(void)
{
    sigset_t set;

    (void) sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
        (void) sigaddset(&set, forwarded[i]);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(const struct sudo_options *o, char **envp, int *ret_code, struct err *err)
{
    const char *name = o->user ? o->user : "root";
    struct agent_request request = { .version = AGENT_VERSION,
                                     .op = AGENT_EXEC,
                                     .flags = AGENT_INHERIT_FDS,
                                     .user = name,
                                     .pid = (uint32_t) getpid() };
    auto_list struct list args = { .data = NULL };
    auto_list struct list env = { .data = NULL };
    auto_close int sock = call_agent(err);
    auto_close int signals = -1;
    struct user target;
    char cwd[AGENT_PATH_MAX];

    if (sock < 0)
        return -1;
    if (o->command_count == 0 && !o->login && !o->shell) { /* -v, -l: is root allowed at all? */
        request = (struct agent_request){ .version = AGENT_VERSION, .op = AGENT_INFO };
        *ret_code = 0;
        return send_request(sock, &request, err) < 0 ? -1 : take_frame(sock, ret_code, err);
    }
    if (user_find(AGENT_ETC, name, true, &target, err) < 0)
        return -1;
    if (add_args(&args, o, &target) < 0 || add_env(&env, o, envp) < 0)
        return err_set(err, ERR_TOO_BIG, "arguments or environment are too long");
    request.args = (struct texts){ .data = args.data, .len = args.len };
    request.env = (struct texts){ .data = env.data, .len = env.len };
    request.cwd = o->login ? NULL : getcwd(cwd, sizeof cwd);
    signals = block_signals();
    if (send_request(sock, &request, err) < 0)
        return -1;
    return wait_for_end(sock, signals, ret_code, err);
}

int sudo_main(int argc, char **argv, char **envp)
{
    struct sudo_options options;
    struct err err;
    int code = 0;

    if (sudo_parse(argc, argv, &options, &err) < 0) {
        (void) fprintf(stderr, "sudo: %s\n%s", err.msg, usage);
        return 1;
    }
    if (options.help || options.version) {
        (void) printf("%s", options.help ? usage : "sudo of cove " COVE_VERSION "\n");
        return 0;
    }
    if (options.forget && !options.command_count)
        return 0; /* there is nothing to forget */
    if (run(&options, envp, &code, &err) < 0) {
        (void) fprintf(stderr, "sudo: %s\n", err.msg);
        return 1;
    }
    if (options.list)
        (void) printf("    (ALL) NOPASSWD: ALL\n");
    return code;
}
