#include "cli/doctor/doctor_checks.h"

#include "base/io.h"
#include "base/kernel.h"
#include "base/own.h"
#include "cli/report.h"
#include "wire/runsc.h"
#include "wire/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES 65536

const char *doctor_status_name(enum doctor_status status)
{
    static const char *const names[] = {
        [DOCTOR_OK] = "ok",
        [DOCTOR_NOTE] = "note",
        [DOCTOR_WARN] = "warn",
        [DOCTOR_FAIL] = "fail",
    };
    _Static_assert(ARRAY_LEN(names) == DOCTOR_STATUS_COUNT, "every status has a name");

    return names[status];
}

void doctor_set(struct doctor_finding *ret, enum doctor_status status, const char *fmt, ...)
{
    va_list args;

    ret->status = status;
    va_start(args, fmt);
    (void) vsnprintf(ret->value, sizeof ret->value, fmt, args);
    va_end(args);
}

char *doctor_text(const struct doctor_host *host, const char *path)
{
    char *text = malloc(FILE_MAX_BYTES);

    if (text && io_read_text(host->root_fd, path, text, FILE_MAX_BYTES) < 0) {
        free(text);
        return NULL;
    }
    return text;
}

int doctor_line(const struct doctor_host *host, const char *path, char *out, size_t size)
{
    if (io_read_text(host->root_fd, path, out, size) < 0)
        return -1;
    out[strcspn(out, "\n")] = '\0';
    return 0;
}

int doctor_exists(const struct doctor_host *host, const char *path)
{
    struct stat st;

    return fstatat(host->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

DOCTOR_RUN(check_kernel)
{
    char release[64];

    if (doctor_line(host, "proc/sys/kernel/osrelease", release, sizeof release) < 0) {
        doctor_set(ret, check->otherwise, "unknown");
        return;
    }
    doctor_set(ret,
               kernel_at_least(release, KERNEL_LEAST_MAJOR, KERNEL_LEAST_MINOR) ? DOCTOR_OK
                                                                                : check->otherwise,
               "Linux %s", release);
}

int doctor_field(const struct doctor_host *host, const char *file, const char *key, char *out,
                 size_t size)
{
    auto_free char *text = doctor_text(host, file);
    size_t len = strlen(key);

    for (char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, len) == 0) {
            line += len + strspn(line + len, ": \t");
            (void) snprintf(out, size, "%.*s", (int) strcspn(line, "\n"), line);
            return 0;
        }
    return -1;
}

static unsigned effective_uid(const struct doctor_host *host)
{
    char uids[64];
    unsigned effective = 1;

    if (doctor_field(host, "proc/self/status", "Uid", uids, sizeof uids) == 0)
        (void) sscanf(uids, "%*u %u", &effective);
    return effective;
}

bool doctor_is_root(const struct doctor_host *host)
{
    return effective_uid(host) == 0;
}

DOCTOR_RUN(check_root)
{
    if (doctor_is_root(host))
        doctor_set(ret, DOCTOR_OK, "root");
    else
        doctor_set(ret, check->otherwise, "uid %u", effective_uid(host));
}

/* A probe that failed with `error`. To another user than root a refusal says nothing about the host. */
static void set_failed(const struct doctor_host *host, const struct doctor_check *check,
                       struct doctor_finding *ret, const char *what, int error)
{
    if ((error == EPERM || error == EACCES) && !doctor_is_root(host)) {
        doctor_set(ret, DOCTOR_NOTE, "only root can try it");
        (void) snprintf(ret->fix, sizeof ret->fix, "sudo cove doctor");
    } else {
        doctor_set(ret, check->otherwise, "%s: %s", what, strerror(error));
    }
}

DOCTOR_RUN(check_namespace)
{
    char path[64];

    (void) snprintf(path, sizeof path, "proc/self/ns/%s", check->name);
    if (doctor_exists(host, path))
        doctor_set(ret, DOCTOR_OK, "yes");
    else
        doctor_set(ret, check->otherwise, "missing");
}

DOCTOR_RUN(check_user_namespace)
{
    char text[32];
    int error;

    check_namespace(host, check, ret);
    if (ret->status != DOCTOR_OK)
        return;
    if (doctor_line(host, "proc/sys/user/max_user_namespaces", text, sizeof text) == 0 &&
        strcmp(text, "0") == 0) {
        doctor_set(ret, check->otherwise, "turned off: user.max_user_namespaces is 0");
        return;
    }
    error = host->probes->user_namespace();
    if (error != PROBE_YES)
        set_failed(host, check, ret, "cannot be made", error);
}

bool doctor_has_word(const char *list, const char *word, const char *separators)
{
    size_t len = strlen(word);

    for (const char *at = list; *at;) {
        size_t n = strcspn(at, separators);

        if (n == len && strncmp(at, word, len) == 0)
            return true;
        at += n;
        at += strspn(at, separators);
    }
    return false;
}

DOCTOR_RUN(check_filesystem)
{
    auto_free char *text = doctor_text(host, "proc/filesystems");

    if (text && doctor_has_word(text, check->name, "\n\t "))
        doctor_set(ret, DOCTOR_OK, "yes");
    else
        doctor_set(ret, check->otherwise, "not known to the running kernel");
}

DOCTOR_RUN(check_overlay)
{
    int error = host->probes->overlay();

    /* Mounting it loads the module, so that the list of file systems is asked afterwards. */
    check_filesystem(host, check, ret);
    if (ret->status == DOCTOR_OK && error != PROBE_YES)
        set_failed(host, check, ret, "cannot be mounted", error);
}

DOCTOR_RUN(check_idmap)
{
    int error = host->probes->idmapped_mount(host->state);
    char what[100];

    (void) snprintf(what, sizeof what, "not on the file system of %.60s", host->state);
    if (error == PROBE_YES)
        doctor_set(ret, DOCTOR_OK, "yes");
    else
        set_failed(host, check, ret, what, error);
}

DOCTOR_RUN(check_layers)
{
    int error = host->probes->detached_clone();

    if (error == PROBE_YES)
        doctor_set(ret, DOCTOR_OK, "mounted nowhere");
    else if (error == EINVAL)
        doctor_set(ret, DOCTOR_OK, "attached in the keeper's own mounts, before Linux 6.15");
    else
        set_failed(host, check, ret, "cannot be cloned", error);
}

DOCTOR_RUN(check_loop)
{
    check_device(host, check, ret);
    if (ret->status == DOCTOR_OK && !doctor_exists(host, "sys/module/loop"))
        doctor_set(ret, check->otherwise, "module not loaded");
}

DOCTOR_RUN(check_device)
{
    if (doctor_exists(host, check->name))
        doctor_set(ret, DOCTOR_OK, "/%s", check->name);
    else
        doctor_set(ret, check->otherwise, "no /%s", check->name);
}

DOCTOR_RUN(check_kvm)
{
    const char *why;

    check_device(host, check, ret);
    if (ret->status != DOCTOR_OK)
        return;
    why = host->probes->kvm();
    if (why)
        doctor_set(ret, check->otherwise, "%s", why);
}

DOCTOR_RUN(check_seccomp)
{
    char actions[256];
    int error = host->probes->seccomp_notify();

    if (error != PROBE_YES)
        doctor_set(ret, check->otherwise, "refused: %s", strerror(error));
    else if (doctor_line(host, "proc/sys/kernel/seccomp/actions_avail", actions, sizeof actions) ==
                 0 &&
             !doctor_has_word(actions, "user_notif", " "))
        doctor_set(ret, DOCTOR_WARN, "filter, but no notification");
    else
        doctor_set(ret, DOCTOR_OK, "yes");
}

DOCTOR_RUN(check_landlock)
{
    int abi = host->probes->landlock_abi();

    if (abi == 0) {
        doctor_set(ret, check->otherwise, "missing");
        return;
    }
    doctor_set(ret, abi >= check->wanted ? DOCTOR_OK : DOCTOR_NOTE, "ABI %d", abi);
    if (abi < check->wanted)
        (void) snprintf(ret->fix, sizeof ret->fix,
                        "none needed: files are covered; abstract sockets are from Linux 6.12 on "
                        "(ABI %lld), and are kept apart by the network namespace in any case",
                        check->wanted);
}

DOCTOR_RUN(check_program)
{
    static const char *const places[] = { "usr/local/sbin", "usr/local/bin", "usr/sbin",
                                          "usr/bin",        "sbin",          "bin" };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%s", places[i], check->name);
        if (faccessat(host->root_fd, path, X_OK, 0) == 0) {
            doctor_set(ret, DOCTOR_OK, "/%s", path);
            return;
        }
    }
    doctor_set(ret, check->otherwise, "not installed");
}

/* Where the keeper looks (driver/gvisor/runsc.c), in its order. */
DOCTOR_RUN(check_gvisor)
{
    static const char *const places[] = { "/usr/local/bin/runsc", "/usr/bin/runsc" };
    uint32_t version;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (faccessat(host->root_fd, places[i] + 1, X_OK, 0) < 0)
            continue;
        version = host->probes->runsc(places[i]);
        if (version == 0)
            doctor_set(ret, check->otherwise, "%s does not tell its version", places[i]);
        else if (version < RUNSC_OLDEST)
            doctor_set(ret, check->otherwise, "%s of %u: too old, %u or later is needed", places[i],
                       version, RUNSC_OLDEST);
        else
            doctor_set(ret, DOCTOR_OK, "%s of %u", places[i], version);
        return;
    }
    doctor_set(ret, check->otherwise, "runsc is not installed");
}

/* The release of the kernel that guests start with; "": there is none. `own`: it was built (tools/guest-kernel). */
static void find_guest_kernel(const struct doctor_host *host, bool *own, char *out, size_t size)
{
    char text[256];

    *own = faccessat(host->root_fd, &(VM_PREFIX VM_OWN VM_KERNEL)[1], R_OK, 0) == 0;
    out[0] = '\0';
    if (!*own && faccessat(host->root_fd, &(VM_PREFIX VM_KERNEL)[1], R_OK, 0) < 0)
        return;
    if (io_read_text(host->root_fd,
                     *own ? &(VM_PREFIX VM_OWN VM_VERSION)[1] : &(VM_PREFIX VM_VERSION)[1], text,
                     sizeof text) > 0)
        vm_parse_parts(text, "kernel", out, size);
    if (!out[0])
        (void) snprintf(out, size, "of an unknown version");
}

/* As the keeper looks (driver/vm/parts.c). */
DOCTOR_RUN(check_vm)
{
    uint32_t version;
    char kernel[64];
    bool own;

    if (faccessat(host->root_fd, &(VM_PREFIX VM_QEMU)[1], R_OK, 0) < 0) {
        doctor_set(ret, check->otherwise, "QEMU is not in " VM_PREFIX);
        return;
    }
    version = host->probes->qemu();
    find_guest_kernel(host, &own, kernel, sizeof kernel);
    if (version == 0)
        doctor_set(ret, check->otherwise, "QEMU in " VM_PREFIX " does not tell its version");
    else if (version < VM_QEMU_OLDEST)
        doctor_set(ret, check->otherwise, "QEMU %u: too old, %u or later is needed", version,
                   VM_QEMU_OLDEST);
    else if (!kernel[0])
        doctor_set(ret, check->otherwise, "there is no kernel in " VM_PREFIX);
    else
        doctor_set(ret, DOCTOR_OK, "QEMU %u, Linux %s (%s)", version, kernel,
                   own ? "built here" : "Debian's");
}

/* A file with a number, held against the row's. A file that is not there: the kernel lacks the
 * feature that it guards, or its switch. */
DOCTOR_RUN(check_number)
{
    char text[64], *end;
    long long value;
    bool good;

    if (doctor_line(host, check->name, text, sizeof text) < 0) {
        doctor_set(ret, DOCTOR_OK, "not in this kernel");
        return;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end) {
        doctor_set(ret, check->otherwise, "'%.40s' is not a number", text);
        return;
    }
    good = check->test == TEST_LEAST ? value >= check->wanted : value == check->wanted;
    if (good)
        doctor_set(ret, DOCTOR_OK, "%lld", value);
    else
        doctor_set(ret, check->otherwise, "%lld, better %s%lld", value,
                   check->test == TEST_LEAST ? "at least " : "", check->wanted);
}

/* A switch that came later than what it switches: without the file the feature is there, and on. */
DOCTOR_RUN(check_switch)
{
    if (doctor_exists(host, check->name)) {
        check_number(host, check, ret);
        return;
    }
    doctor_set(ret, check->otherwise, "on: this kernel has no switch for it");
    (void) snprintf(ret->fix, sizeof ret->fix,
                    "none needed: sandboxes are refused it by their filter; newer kernels have %s",
                    strrchr(check->name, '/') + 1);
}

DOCTOR_RUN(check_core_pattern)
{
    char text[160];

    if (doctor_line(host, check->name, text, sizeof text) < 0)
        doctor_set(ret, DOCTOR_OK, "not in this kernel");
    else if (text[0] == '|' && strncmp(text, "|/bin/false", 11) != 0)
        doctor_set(ret, check->otherwise, "%.140s", text);
    else
        doctor_set(ret, DOCTOR_OK, "%.140s", text);
}

DOCTOR_RUN(check_vulnerabilities)
{
    int fd = openat(host->root_fd, check->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    char open_flaws[128] = "";
    size_t len = 0, count = 0;

    if (!dir) {
        doctor_set(ret, DOCTOR_NOTE, "the kernel does not say");
        return;
    }
    while ((entry = readdir(dir))) {
        char text[256];

        if (entry->d_name[0] == '.' ||
            io_read_text(dirfd(dir), entry->d_name, text, sizeof text) < 0)
            continue;
        count++;
        if (strncmp(text, "Vulnerable", 10) == 0 && len < sizeof open_flaws - 32)
            len += (size_t) snprintf(open_flaws + len, sizeof open_flaws - len, "%s%.28s",
                                     len ? ", " : "", entry->d_name);
    }
    if (len)
        doctor_set(ret, check->otherwise, "not mitigated: %s", open_flaws);
    else
        doctor_set(ret, DOCTOR_OK, "%zu known, each mitigated or absent", count);
}

DOCTOR_RUN(check_open_files)
{
    char text[96], hard[32];

    if (doctor_field(host, check->name, "Max open files", text, sizeof text) < 0 ||
        sscanf(text, "%*s %31s", hard) != 1)
        doctor_set(ret, check->otherwise, "unknown");
    else if (strcmp(hard, "unlimited") == 0 || strtoll(hard, NULL, 10) >= check->wanted)
        doctor_set(ret, DOCTOR_OK, "%s", hard);
    else
        doctor_set(ret, check->otherwise, "%s, better at least %lld", hard, check->wanted);
}

DOCTOR_RUN(check_capability)
{
    char text[64];
    unsigned long long mask = 0;

    if (doctor_field(host, check->name, "CapEff", text, sizeof text) == 0)
        (void) sscanf(text, "%llx", &mask);
    if (mask >> check->wanted & 1)
        doctor_set(ret, DOCTOR_OK, "yes");
    else
        doctor_set(ret, check->otherwise, "missing");
}

DOCTOR_RUN(check_disk)
{
    uint64_t bytes = 0, inodes = 0;
    char size[32];

    if (host->probes->disk_free(host->state, &bytes, &inodes) != 0)
        doctor_set(ret, check->otherwise, "unknown");
    else
        doctor_set(ret,
                   bytes >= (uint64_t) check->wanted && inodes >= 100000 ? DOCTOR_OK
                                                                         : check->otherwise,
                   "%s, %" PRIu64 " inodes", report_size(size, sizeof size, bytes), inodes);
}

DOCTOR_RUN(check_memory)
{
    char total[64], available[64], a[32], b[32];

    if (doctor_field(host, check->name, "MemTotal", total, sizeof total) < 0 ||
        doctor_field(host, check->name, "MemAvailable", available, sizeof available) < 0) {
        doctor_set(ret, check->otherwise, "unknown");
        return;
    }
    doctor_set(ret,
               strtoll(available, NULL, 10) * 1024 >= check->wanted ? DOCTOR_OK : check->otherwise,
               "%s, %s available", report_size(a, sizeof a, strtoull(total, NULL, 10) * 1024),
               report_size(b, sizeof b, strtoull(available, NULL, 10) * 1024));
}

DOCTOR_RUN(check_keeper)
{
    struct doctor_keeper keeper = { 0 };
    char why[160] = "";

    if (host->probes->keeper(host->state, &keeper, why, sizeof why) != 0) {
        doctor_set(ret, check->otherwise, "does not run for %.80s", host->state);
        return;
    }
    doctor_set(ret, DOCTOR_OK, "runs (pid %u), %u of %u sandboxes", keeper.pid, keeper.sandboxes,
               keeper.sandboxes_max);
}

DOCTOR_RUN(check_templates)
{
    char names[128];

    if (host->probes->templates(host->state, names, sizeof names) > 0)
        doctor_set(ret, strstr(names, "base") ? DOCTOR_OK : check->otherwise, "%s", names);
    else
        doctor_set(ret, check->otherwise, "none yet ('host' is made by 'cove up')");
}
