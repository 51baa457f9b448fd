#include "base/log.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/common.h"
#include "cli/copy/restore_state.h"
#include "cli/report.h"
#include "cli/template/template_maker.h"
#include "cli/up/gate.h"
#include "cli/up/keep.h"
#include "cli/up/pulls.h"
#include "cli/up/serve.h"
#include "cli/up/supervise.h"
#include "cli/verbs.h"
#include "template/template_host.h"
#include "template/template_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

struct up_options {
    const char *config, *group, *max_sandboxes, *slots, *disk_reserve, *domain, *public_domain;
    struct serve_given server;
    bool verbose, no_server, vm_emulated;
};

#define AT(field) offsetof(struct up_options, field)

/* clang-format off */
static const struct option up_options[] = {
    { 0, "config", OPTION_TEXT, AT(config), "FILE", COMPLETE_FILE,
      "settings of the HTTP server (/etc/cove/coved.conf)" },
    { 0, "group", OPTION_TEXT, AT(group), "NAME", COMPLETE_NONE,
      "let members of this group use cove, too" },
    { 0, "max-sandboxes", OPTION_TEXT, AT(max_sandboxes), "N", COMPLETE_NONE,
      "refuse more sandboxes than this" },
    { 0, "slots", OPTION_TEXT, AT(slots), "N", COMPLETE_NONE,
      "user id ranges to use" },
    { 0, "disk-reserve", OPTION_TEXT, AT(disk_reserve), "SIZE", COMPLETE_NONE,
      "keep this much of the host's disk free (2 %, at most 4G)" },
    { 0, "listen", OPTION_TEXT, AT(server.listen), "ADDR:PORT", COMPLETE_NONE,
      "where the HTTP server listens (127.0.0.1:8000)" },
    { 0, "domain", OPTION_TEXT, AT(domain), "NAME", COMPLETE_NONE,
      "name of the server; ports of sandboxes are below it" },
    { 0, "public-domain", OPTION_TEXT, AT(public_domain), "NAME[:PORT]", COMPLETE_NONE,
      "what SDKs are told to find ports of sandboxes below" },
    { 0, "tls-listen", OPTION_TEXT, AT(server.tls_listen), "ADDR:PORT", COMPLETE_NONE,
      "HTTPS here, and plain HTTP at --listen" },
    { 0, "tls-cert", OPTION_TEXT, AT(server.tls_cert), "FILE", COMPLETE_FILE,
      "certificate chain, PEM; without --tls-listen, HTTPS at --listen" },
    { 0, "tls-key", OPTION_TEXT, AT(server.tls_key), "FILE", COMPLETE_FILE,
      "its private key, PEM" },
    { 0, "allow-vm-emulated", OPTION_FLAG, AT(vm_emulated), NULL, COMPLETE_NONE,
      "virtual machines without KVM, for tests: slow, and no boundary" },
    { 0, "no-server", OPTION_FLAG, AT(no_server), NULL, COMPLETE_NONE,
      "start the keeper alone" },
    { 'v', "verbose",       OPTION_FLAG, AT(verbose),       NULL,   COMPLETE_NONE, "log more" },
};

const struct verb up_verb = {
    .name = "up",
    .synopsis = "[OPTION…]",
    .summary = "start cove in the foreground",
    .details =
        "Makes the template 'host' if need be, starts the keeper, the network gateway as the user\n"
        "'cove-gateway', a process for images of tenants, and the HTTP server as the user 'cove'. A\n"
        "program that ends is started again; sandboxes keep running meanwhile. Ctrl-C stops all;\n"
        "sandboxes made to stay keep running, and the next 'cove up' finds them again. SIGHUP reads the\n"
        "settings again. COVE_LISTEN and 'listen =' in the configuration file count as --listen does.\n"
        "Needs root.",
    .options = up_options,
    .option_count = sizeof up_options / sizeof up_options[0],
    .run = verb_up,
};
/* clang-format on */

/* The programs, in the order of their start. A program that another one stands on comes before it. */
enum { KEEPER, GATEWAY, PULLS, SERVER, PROGRAM_COUNT };

struct up {
    struct keep keep;
    struct gate gate;
    struct pulls pulls;
    struct serve serve;
};

static void print_ready(const struct keeper_hello *hello, const struct serve *serve)
{
    const char *state = getenv("COVE_STATE");
    bool is_default = !state || !state[0] || strcmp(state, COVE_STATE_DEFAULT) == 0;

    printf("cove is ready: %u of %u sandboxes, template '%s', state %s\n", hello->sandboxes,
           hello->sandboxes_max, hello->default_template, report_state());
    printf("isolation: %s\n", hello->isolation);
    printf("try it in another terminal:  cove%s%s %s\n", is_default ? "" : " --state ",
           is_default ? "" : state,
           serve->listen_fd >= 0 ? "run -- python3 -c 'print(1+1)'" : "ps --keeper");
    if (serve->listen_fd >= 0) {
        const char *scheme = serve->settings.tls_cert[0] && serve->tls_fd < 0 ? "https" : "http";

        printf("the API is at %s://%s (docs/api.md):\n", scheme, serve->listen);
        printf("  curl -X POST %s://%s/v1/sandboxes\n", scheme, serve->listen);
        if (serve->tls_fd >= 0)
            printf("and with TLS at https://%s (docs/previews.md)\n", serve->tls_listen);
    }
    (void) fflush(stdout);
}

static void announce(void *with)
{
    const struct up *up = with;

    print_ready(&up->keep.hello, &up->serve);
}

static int group_find(const char *name, gid_t *ret, struct err *err)
{
    const struct group *group = getgrnam(name);
    uint64_t gid;

    if (!group && parse_u64(name, &gid, err) < 0)
        return err_set(err, ERR_USAGE, "up: there is no group '%.60s'", name);
    *ret = group ? group->gr_gid : (gid_t) gid;
    return 0;
}

/* Root's alone. The server, and with --group that group's members, may pass through to what is theirs and see
 * nothing else: the templates hold setuid programs of root that are meant for sandboxes. */
static int state_make(const struct up_options *options, const struct serve *serve, struct err *err)
{
    const char *state = report_state();
    auto_close int fd = -1;
    bool server = serve->listen_fd >= 0;

    if (mkdir(state, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make the state directory %s", state);
    if (!options->group && !server)
        return 0;
    fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fchown(fd, 0, serve->keeper_gid) < 0 || fchmod(fd, server ? 0711 : 0710) < 0)
        return err_sys(err, errno, "let others pass through %s", state);
    if (mkdirat(fd, "templates", 0700) < 0 && fchmodat(fd, "templates", 0700, 0) < 0)
        return err_sys(err, errno, "keep others out of %s/templates", state);
    return 0;
}

/* Where the server's settings are: whole, for the server's directory is another. */
static int find_config(struct serve *serve, const char *given, char whole[PATH_MAX],
                       struct err *err)
{
    if (!given)
        return 0;
    if (!realpath(given, whole))
        return err_set(err, ERR_USAGE, "up: --config %.200s: %s", given, strerror(errno));
    serve->config = whole;
    return 0;
}

/* What the server needs, and all of it that can be refused before anything is started. */
static int prepare_server(const struct up_options *options, struct serve *serve,
                          char config[PATH_MAX], struct err *err)
{
    if (options->no_server && (options->server.listen || options->config))
        return err_set(err, ERR_USAGE, "up: --%s and --no-server exclude each other",
                       options->config ? "config" : "listen");
    if (options->no_server)
        return 0;
    if (find_config(serve, options->config, config, err) < 0 || serve_user(serve, err) < 0 ||
        serve_settings(serve, &options->server, err) < 0)
        return -1;
    if (setenv("COVE_STATE", serve->settings.state, 1) < 0)
        return err_sys(err, errno, "COVE_STATE");
    return 0;
}

static int refuse_second(struct keep *keep, struct err *err)
{
    if (!keep_is_ready(keep))
        return 0;
    return err_set(err, ERR_STATE, "a keeper (pid %u) already serves %s", keep->hello.pid,
                   report_state());
}

/* Who may reach the keeper, the server's socket, and what sandboxes are made of. */
static int prepare(const struct up_options *options, struct up *up, char config[PATH_MAX],
                   struct err *err)
{
    struct serve *serve = &up->serve;
    struct maker maker;

    if (prepare_server(options, serve, config, err) < 0 || refuse_second(&up->keep, err) < 0)
        return -1;
    if (!options->no_server && (serve_listen(serve, err) < 0 || gate_user(&up->gate, err) < 0 ||
                                pulls_users(&up->pulls, err) < 0))
        return -1;
    if (options->group && group_find(options->group, &serve->keeper_gid, err) < 0)
        return -1;
    if (options->group)
        serve->admin_gid = serve->keeper_gid;
    if (restore_finish_at(report_state(), err) < 0 || state_make(options, serve, err) < 0 ||
        (!options->no_server && (gate_listen(&up->gate, serve->uid, err) < 0 ||
                                 pulls_listen(&up->pulls, serve->uid, err) < 0)))
        return -1;
    maker_init(&maker, "host");
    maker.how = "update";
    /* Before the server's socket is there: no server would answer what is asked over it for the records. */
    if (template_host_ensure(&maker.way, report_state(), err) < 0)
        return -1;
    maker_init(&maker, TEMPLATE_SCRATCH);
    maker.how = "update";
    if (template_scratch_ensure(&maker.way, report_state(), err) < 0)
        return -1;
    return options->no_server ? 0 : serve_listen_admin(serve, err);
}

static int up(const struct up_options *options, struct err *err)
{
    struct up up = {
        .keep = {
            .group = options->group,
            .max_sandboxes = options->max_sandboxes,
            .disk_reserve = options->disk_reserve,
            .slots = options->slots,
            .vm_emulated = options->vm_emulated,
            .verbose = options->verbose,
        },
        .gate.start = { .listen_fd = -1, .verbose = options->verbose },
        .pulls = { .listen_fd = -1 },
        .serve = {
            .listen_fd = -1,
            .tls_fd = -1,
            .admin_fd = -1,
            .probe_fd = -1,
            .given = &options->server,
            .domain = options->domain,
            .public_domain = options->public_domain,
            .verbose = options->verbose,
        },
    };
    struct program programs[PROGRAM_COUNT] = {
        [KEEPER] = { .name = "cove-keeper",
                     .start = keep_start,
                     .is_ready = keep_is_ready,
                     .with = &up.keep,
                     .hurry = SIGTERM },
        [GATEWAY] = { .name = "cove-gateway",
                      .start = gate_start,
                      .is_ready = gate_is_ready,
                      .with = &up.gate,
                      .off = options->no_server,
                      .hurry = SIGKILL },
        [PULLS] = { .name = "cove-pulls",
                    .start = pulls_start,
                    .is_ready = pulls_are_ready,
                    .with = &up.pulls,
                    .off = options->no_server,
                    .hurry = SIGKILL },
        [SERVER] = { .name = "coved",
                     .start = serve_start,
                     .is_ready = serve_is_ready,
                     .reload = serve_reload,
                     .with = &up.serve,
                     .off = options->no_server,
                     .needs = PROGRAM_BIT(KEEPER) | PROGRAM_BIT(GATEWAY),
                     .hurry = SIGKILL },
    };
    char group[32], config[PATH_MAX];

    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "up: the keeper needs root");
    if (prepare(options, &up, config, err) < 0)
        return -1;
    if (!options->group && !options->no_server) {
        (void) snprintf(group, sizeof group, "%u", (unsigned) up.serve.keeper_gid);
        up.keep.group = group;
    }
    log_init("cove", options->verbose ? LOG_DEBUG : LOG_INFO);
    return supervise(programs, PROGRAM_COUNT, announce, &up, err);
}

int verb_up(int argc, char **argv)
{
    struct up_options options = { .verbose = false };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&up_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&up_verb, operands[0]);
    code = up(&options, &err);
    return code < 0 ? report_error(&err) : code;
}
