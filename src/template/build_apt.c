#include "template/build_apt.h"

#include "base/io.h"
#include "base/own.h"
#include "template/child.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define ARGS_MAX    48
#define SOURCES_MAX 8
#define KEYRING     "/usr/share/keyrings/debian-archive-keyring.gpg"

/* In mmdebstrap's order. `line` begins the phase; from..to is its part of the way. */
static const struct phase {
    const char *line;
    const char *step;
    unsigned from, to;
} phases[] = {
    /* clang-format off */
    { "",                                        "starting",                       0,  1 },
    { "I: running apt-get update",               "reading package lists",          1,  4 },
    { "I: downloading packages with apt",        "downloading essential packages", 4,  9 },
    { "I: extracting archives",                  "unpacking essential packages",   9, 15 },
    { "I: installing essential packages",        "installing essential packages", 15, 25 },
    { "I: installing remaining packages",        "installing packages",           25, 94 },
    { "I: running --customize-hook",             "setting up",                    94, 97 },
    { "I: cleaning package lists and apt cache", "cleaning up",                   97, 98 },
    /* clang-format on */
};

static void count(struct build_meter *meter, const char *line)
{
    static const struct {
        const char *prefix;
        size_t counter;
    } rows[] = {
        { "Get:", offsetof(struct build_meter, fetched) },
        { "Unpacking ", offsetof(struct build_meter, unpacked) },
        { "Setting up ", offsetof(struct build_meter, configured) },
    };
    const char *installed = strstr(line, " newly installed");

    if (installed && strstr(line, "upgraded, ")) {
        (void) sscanf(strstr(line, "upgraded, ") + 10, "%u", &meter->packages);
        meter->fetched = meter->unpacked = meter->configured = 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strncmp(line, rows[i].prefix, strlen(rows[i].prefix)) == 0) {
            unsigned *counter = (unsigned *) (void *) ((char *) meter + rows[i].counter);

            (*counter)++;
            (void) snprintf(meter->detail, sizeof meter->detail, "%s", line);
        }
}

unsigned build_meter_line(struct build_meter *meter, const char *line)
{
    const struct phase *phase;
    unsigned done, all;

    for (unsigned i = meter->phase + 1; i < ARRAY_LEN(phases); i++)
        if (strncmp(line, phases[i].line, strlen(phases[i].line)) == 0) {
            memset(meter, 0, sizeof *meter);
            meter->phase = i;
        }
    count(meter, line);
    phase = &phases[meter->phase];
    /* Packages that were downloaded before are not fetched: unpacking says that fetching is over.
     */
    if (meter->unpacked || meter->configured)
        meter->fetched = meter->packages;
    done = meter->fetched + meter->unpacked + meter->configured;
    all = meter->packages * 3;
    if (all == 0)
        return phase->from;
    return phase->from + (phase->to - phase->from) * (done > all ? all : done) / all;
}

const char *build_meter_step(const struct build_meter *meter)
{
    return phases[meter->phase].step;
}

struct following {
    struct build_meter meter;
    const struct template_maker *maker;
};

static void on_line(void *context, const char *line)
{
    struct following *f = context;
    unsigned percent = build_meter_line(&f->meter, line);

    template_step(f->maker, percent, build_meter_step(&f->meter),
                  f->meter.detail[0] ? f->meter.detail : NULL);
}

/* The Debian mirror that the host itself uses for this suite, as lines of a sources.list. None:
 * mmdebstrap takes Debian's own. A mirror that needs a password is not used: it would be in the
 * log. */
static size_t host_sources(const char *suite, char sources[SOURCES_MAX][256])
{
    static const char *const ask[] = { "apt-get",
                                       "indextargets",
                                       "--format",
                                       "$(RELEASE) $(REPO_URI) $(COMPONENT)",
                                       "Created-By: Packages",
                                       NULL };
    auto_free char *text = malloc(65536);
    struct err err;
    size_t n = 0, len = strlen(suite);
    bool has_suite = false;
    char *save = NULL;

    if (!text || child_ask(ask, text, 65536, &err) < 0)
        return 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char release[64], uri[128], component[32], source[256];
        const char *pocket;
        bool known = false;

        if (sscanf(line, "%63s %127s %31s", release, uri, component) != 3 || n == SOURCES_MAX ||
            strncmp(release, suite, len) != 0 || strcmp(component, "main") != 0 ||
            strchr(uri, '@') || strncmp(uri, "http", 4) != 0)
            continue;
        pocket = release + len;
        if (*pocket && strcmp(pocket, "-updates") != 0 && strcmp(pocket, "-security") != 0)
            continue;
        has_suite |= !*pocket;
        (void) snprintf(source, sizeof source, "deb [signed-by=" KEYRING "] %s %s main", uri,
                        release);
        for (size_t i = 0; i < n; i++)
            known |= strcmp(sources[i], source) == 0;
        if (!known)
            memcpy(sources[n++], source, sizeof source);
    }
    return has_suite ? n : 0;
}

/* A mirror that stands still (a snapshot) has lists that have expired; the host then says so. */
static bool host_takes_old_lists(void)
{
    static const char *const ask[] = {
        "apt-config", "dump", "--format", "%v", "Acquire::Check-Valid-Until", NULL
    };
    char answer[64];
    struct err err;

    return child_ask(ask, answer, sizeof answer, &err) == 0 && strncmp(answer, "false", 5) == 0;
}

/* Commas for mmdebstrap. */
static void comma_list(const char *blanks, char *out, size_t size)
{
    (void) snprintf(out, size, "--include=%s", blanks);
    for (char *c = out; *c; c++)
        if (*c == ' ')
            *c = ',';
}

/* The recipe's steps as a program: mmdebstrap calls it with the tree as its argument. */
static int write_steps(const struct recipe *recipe, const char *build, struct err *err)
{
    auto_close int fd = open(build, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char text[8192];
    int n = snprintf(text, sizeof text,
                     "#!/bin/sh\nset -e\nSUITE=%s\numount \"$1/var/cache/apt/archives\"\n%s",
                     recipe->suite, recipe->steps);

    if (fd < 0 || n < 0 || (size_t) n >= sizeof text)
        return err_set(err, ERR_INTERNAL, "the steps of '%s' do not fit", recipe->name);
    return tree_put(fd, "steps", text, (size_t) n, 0700, 0, err);
}

/* The last words of a failed build are where the reason is. */
static void show_log_end(const struct template_maker *maker, const char *path)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[3073];
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    n = pread(fd, text, sizeof text - 1, st.st_size > 3072 ? st.st_size - 3072 : 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    if (maker->failed)
        maker->failed(maker->context, text);
}

int build_apt(const struct recipe *recipe, const char *build, const char *debs,
              const struct template_maker *maker, struct err *err)
{
    char include[2048], setup[PATH_MAX + 128], customize[PATH_MAX + 32], root[PATH_MAX],
        log_path[PATH_MAX], sources[SOURCES_MAX][256];
    const char *argv[ARGS_MAX] = {
        "mmdebstrap",
        "--verbose",
        "--variant=minbase",
        "--mode=root",
        "--format=directory",
        /* Packages of earlier builds are there before the first download, and stay. */
        "--skip=download/empty",
        "--skip=essential/unlink",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-include=/usr/share/locale/locale.alias",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        include,
        setup,
        customize,
    };
    size_t n = 15, source_count = host_sources(recipe->suite, sources);
    struct following following = { .maker = maker };
    struct child child = { .argv = argv, .line = on_line, .context = &following };
    auto_close int log_fd = -1;

    comma_list(recipe->packages, include, sizeof include);
    (void) snprintf(
        setup, sizeof setup,
        /* Java's alternatives have manual pages, which need a directory to be missing from. */
        "--setup-hook=mkdir -p \"$1/usr/share/man/man1\" "
        "\"$1/var/cache/apt/archives\" && mount --bind '%s' "
        "\"$1/var/cache/apt/archives\"",
        debs);
    (void) snprintf(customize, sizeof customize, "--customize-hook=%s/steps", build);
    (void) snprintf(root, sizeof root, "%s/root", build);
    (void) snprintf(log_path, sizeof log_path, "%s/log", build);
    if (host_takes_old_lists())
        argv[n++] = "--aptopt=Acquire::Check-Valid-Until \"false\"";
    argv[n++] = recipe->suite;
    argv[n++] = root;
    for (size_t i = 0; i < source_count; i++)
        argv[n++] = sources[i];
    argv[n] = NULL;

    if (write_steps(recipe, build, err) < 0)
        return -1;
    log_fd = open(log_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (log_fd < 0)
        return err_sys(err, errno, "make %s", log_path);
    child.log_fd = log_fd;
    if (child_run(&child, err) < 0) {
        if (!child_interrupted())
            show_log_end(maker, log_path);
        return -1;
    }
    return 0;
}
