/* runsc gets a bundle: a root that is there already, and a config.json that is written here.
 *
 *   --network=none       the guest has a loopback and nothing else; the ways out are streams of the mux
 *   --overlay2=none      writes go to the sandbox's own disk, which has its bounds
 *   --ignore-cgroups     the jail is in the sandbox's cgroups already
 *   --net-raw            without it there are no rules of iptables inside (agent/egress.c)
 *   run -detach          runsc itself ends; the guest's kernel (the sentry) and its file server (the gofer) become our children
 *   create               the same, and the sentry waits to be told what to start: it is told to load (control.h) */
#include "bridge/guest.h"

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "bridge/control.h"
#include "wire/boot.h"
#include "wire/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "/machine"
#define BUNDLE  "/bundle"

static const char *const capabilities[] = {
    [0] = "CAP_CHOWN",      [1] = "CAP_DAC_OVERRIDE", [3] = "CAP_FOWNER",
    [4] = "CAP_FSETID",     [5] = "CAP_KILL",         [6] = "CAP_SETGID",
    [7] = "CAP_SETUID",     [8] = "CAP_SETPCAP",      [10] = "CAP_NET_BIND_SERVICE",
    [12] = "CAP_NET_ADMIN", [13] = "CAP_NET_RAW",     [18] = "CAP_SYS_CHROOT",
    [21] = "CAP_SYS_ADMIN", [31] = "CAP_SETFCAP",
};

static void put_texts(struct json_out *json, const char *key, char **texts)
{
    json_out_array(json, key);
    for (; *texts; texts++)
        json_out_text(json, NULL, *texts);
    json_out_end(json);
}

static void put_capabilities(struct json_out *json)
{
    static const char *const sets[] = { "bounding", "effective", "permitted" };

    json_out_object(json, "capabilities");
    for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
        json_out_array(json, sets[s]);
        for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
            if (capabilities[i] && (BOOT_AGENT_CAPS | BOOT_GUEST_CAPS) & BOOT_CAP(i))
                json_out_text(json, NULL, capabilities[i]);
        json_out_end(json);
    }
    json_out_end(json);
}

static void put_process(struct json_out *json, const struct guest_start *start)
{
    json_out_object(json, "process");
    json_out_bool(json, "terminal", false);
    json_out_raw(json, "user", "{\"uid\": 0, \"gid\": 0}");
    put_texts(json, "args", start->argv);
    put_texts(json, "env", start->envp);
    json_out_text(json, "cwd", "/");
    put_capabilities(json);
    json_out_array(json, "rlimits");
    json_out_object(json, NULL);
    json_out_text(json, "type", "RLIMIT_NOFILE");
    json_out_number(json, "hard", BOOT_FILES_MAX);
    json_out_number(json, "soft", BOOT_FILES_MAX);
    json_out_end(json);
    json_out_end(json);
    json_out_bool(json, "noNewPrivileges", true);
    json_out_end(json);
}

/* Where the guest's kernel has file systems of its own, and the agent's program. */
static const char mounts[] =
    "{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},"
    " {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\"},"
    " {\"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\"},"
    " {\"destination\": \"/dev/shm\", \"type\": \"tmpfs\", \"source\": \"tmpfs\", \"options\": "
    "[\"mode=1777\", \"noexec\"]},"
    " {\"destination\": \"/sys\", \"type\": \"sysfs\", \"source\": \"sysfs\", \"options\": "
    "[\"ro\"]},"
    " {\"destination\": \"/dev/cove\", \"type\": \"bind\", \"source\": \"/agent\", \"options\": "
    "[\"ro\", \"bind\"]}";

/* runsc asks the host for the state of what is mounted like this, so that a reader sees what another sandbox writes. */
static void put_volume(struct json_out *json, size_t number, const char *text, size_t len)
{
    char path[VOLUME_PATH_MAX], source[32];

    (void) snprintf(path, sizeof path, "%.*s", (int) len - 1, text + 1);
    (void) snprintf(source, sizeof source, "/volumes/%zu", number);
    json_out_object(json, NULL);
    json_out_text(json, "destination", path);
    json_out_text(json, "type", "bind");
    json_out_text(json, "source", source);
    json_out_array(json, "options");
    json_out_text(json, NULL, "bind");
    json_out_text(json, NULL, "nosuid");
    json_out_text(json, NULL, "nodev");
    json_out_text(json, NULL, text[0] == 'r' ? "ro" : "rw");
    json_out_end(json);
    json_out_end(json);
}

static void put_mounts(struct json_out *json, const char *volumes)
{
    size_t number = 0;

    json_out_array(json, "mounts");
    json_out_raw(json, NULL, mounts);
    for (const char *at = volumes; *at; at += strcspn(at, "\n") + 1)
        put_volume(json, number++, at, strcspn(at, "\n"));
    json_out_end(json);
}

static int write_config(const struct guest_start *start, struct err *err)
{
    auto_file FILE *file = fopen(BUNDLE "/config.json", "we");
    struct utsname names;
    struct json_out json;

    if (!file || uname(&names) < 0)
        return err_sys(err, errno, "make config.json");
    json_out_init(&json, file);
    json_out_object(&json, NULL);
    json_out_text(&json, "ociVersion", "1.0.2");
    put_process(&json, start);
    json_out_raw(&json, "root", "{\"path\": \"" BUNDLE "/rootfs\"}");
    json_out_text(&json, "hostname", names.nodename);
    put_mounts(&json, start->volumes);
    json_out_raw(
        &json, "linux",
        "{\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"}, {\"type\": \"ipc\"},"
        " {\"type\": \"uts\"}, {\"type\": \"mount\"}]}");
    json_out_end(&json);
    return json_out_finish(&json) < 0 || fflush(file) != 0
               ? err_set(err, ERR_INTERNAL, "cannot write config.json")
               : 0;
}

static _Noreturn void become_runsc(const struct guest_start *start)
{
    static const char *const args[] = {
        "runsc",           ("--root=" CONTROL_DIR), "--platform=systrap", "--network=none",
        "--overlay2=none", "--ignore-cgroups",      "--net-raw",
    };
    static const char *const run[] = { "run", "-detach", ("-bundle=" BUNDLE), CONTROL_GUEST };
    static const char *const create[] = { "create", ("-bundle=" BUNDLE), CONTROL_GUEST };
    const char *argv[ARRAY_LEN(args) + ARRAY_LEN(run) + 1] = { NULL };
    char *envp[] = { NULL };

    memcpy(argv, args, sizeof args);
    if (start->way == GUEST_LOAD)
        memcpy(argv + ARRAY_LEN(args), create, sizeof create);
    else
        memcpy(argv + ARRAY_LEN(args), run, sizeof run);
    if (dup2(start->trunk, 0) < 0 || dup2(start->log, 1) < 0 || dup2(start->log, 2) < 0 ||
        io_close_from(3, true) < 0)
        _exit(126);
    (void) execve(PROGRAM, (char *const *) (uintptr_t) argv, envp);
    _exit(127);
}

static int explain(int status, struct err *err)
{
    char words[300];

    if (WIFSIGNALED(status))
        return err_set(err, ERR_UNAVAILABLE, "runsc was killed by signal %d", WTERMSIG(status));
    guest_last_words(words, sizeof words);
    return err_set(err, ERR_UNAVAILABLE, "runsc failed with status %d: %s", WEXITSTATUS(status),
                   words);
}

int guest_start_gvisor(struct guest_start *start, struct err *err)
{
    int status = 0;
    pid_t pid;

    if (mkdir(CONTROL_DIR, 0700) < 0)
        return err_sys(err, errno, "make " CONTROL_DIR);
    if (write_config(start, err) < 0)
        return -1;
    pid = fork();
    if (pid == 0)
        become_runsc(start);
    if (pid < 0)
        return err_sys(err, errno, "start runsc");
    while (waitpid(pid, &status, 0) < 0) /* nothing else of ours has ended before */
        if (errno != EINTR)
            return err_sys(err, errno, "wait for runsc");
    if (status != 0)
        return explain(status, err);
    /* What it said until here is no reason for an end that comes later: that the jail refuses a barrier (jail/seccomp.c), for one. */
    IGNORE(ftruncate(start->log, 0) < 0);
    return 0;
}
