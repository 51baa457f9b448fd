#include "driver/vm/load.h"

#include "base/own.h"
#include "driver/disks.h"
#include "driver/jail/load.h"
#include "driver/jail/save.h"
#include "driver/vm/parts.h"
#include "keeper/life.h"
#include "wire/boot.h"
#include "wire/vm.h"

#include <string.h>

#define DEVICES_MAX                                                                                \
    (64ull << 20) /* of a state, what is not memory; virtiofsd's is the most of it */

/* ---- its template ---- */

/* Takes the descriptor. */
static void add_root(struct machine *m, int fd, char letter)
{
    size_t count = strlen(m->roots);

    m->root_fd[count] = fd;
    m->roots[count] = letter;
    m->roots[count + 1] = '\0';
}

void load_machine_done(struct machine *m)
{
    for (size_t i = 0; m->roots[i]; i++)
        own_close(&m->root_fd[i]);
    m->roots[0] = '\0';
}

/* A template that is files is disks of the machine, and so are the disks between it and the sandbox's own. The version before had one file,
 * and nothing in between; what it saved is loaded so. */
static bool has_disks(const struct sandbox *s, const struct template *t)
{
    bool before = s->image_memory && !s->template_disks;

    return t->image && s->layers.count + t->below_count <= (before ? 1 : BOOT_ROOTS_MAX);
}

/* The uppermost first. */
static int open_roots(const struct keeper *k, const struct sandbox *s, struct template *t,
                      struct machine *ret, struct err *err)
{
    for (uint32_t i = 1; i < s->layers.count; i++) {
        int fd = disk_open_file(&k->host->disks, s->layers.number[i], err);

        if (fd < 0) {
            load_machine_done(ret);
            return -1;
        }
        add_root(ret, fd, BOOT_ROOT_DISK);
    }
    add_root(ret, take_fd(&t->root_fd), BOOT_ROOT_EROFS);
    for (size_t i = t->below_count; i > 0; i--)
        add_root(ret, take_fd(&t->below_fd[i - 1]), BOOT_ROOT_EROFS);
    return 0;
}

int load_machine(const struct keeper *k, struct sandbox *s, int templates_fd, struct machine *ret,
                 struct err *err)
{
    struct template t;
    int rc = 0;

    *ret = (struct machine){ .isolation = isolation_name(s->info.isolation),
                             .program = VM_PREFIX,
                             .bridge_fd = k->host->bridge_fd,
                             .vm = true,
                             .kvm_fd = s->info.isolation == ISOLATION_VM ? k->host->kvm_fd : -1,
                             .memory_fd = -1,
                             .state_fd = -1,
                             .way = s->image_memory ? BOOT_BRIDGE_LOAD : BOOT_BRIDGE_START };
    if (template_open_tree(&t, templates_fd, s->info.template, s->template_inode, err) < 0)
        return -1;
    s->template_inode = t.inode;
    if (has_disks(s, &t))
        rc = open_roots(k, s, &t, ret, err);
    s->template_disks = s->template_disks || !s->image_memory;
    template_close(&t);
    return rc;
}

/* ---- what can be had ---- */

static uint64_t processors(const struct limits *limits)
{
    return (limits->cpu_milli + 999) / 1000;
}

/* What a machine is built with; and of its files alone, what its file system is made with. */
static int check_limits(const struct limits *limits, const struct limits *own, bool files_only,
                        struct err *err)
{
    static const struct {
        const char *name;
        bool of_files;
    } fixed[] = { { "disk", true },  { "inodes", true }, { "memory", false },
                  { "pids", false }, { "files", false }, { "ptys", false } };

    for (size_t i = 0; i < limit_count; i++)
        for (size_t n = 0; n < ARRAY_LEN(fixed); n++)
            if ((fixed[n].of_files || !files_only) &&
                strcmp(limit_table[i].name, fixed[n].name) == 0 &&
                limit_value(limits, &limit_table[i]) != limit_value(own, &limit_table[i]))
                return err_set(err, ERR_LIMIT,
                               "limit '%s': the image of a virtual machine keeps its own",
                               fixed[n].name);
    if (!files_only && processors(limits) != processors(own))
        return err_set(err, ERR_LIMIT, "limit 'cpus': the machine has %u processors",
                       (unsigned) processors(own));
    return 0;
}

static int check(struct keeper *k, const struct limits *limits, const struct image_meta *meta,
                 bool files_only, struct err *err)
{
    bool memory = meta->image.flags & KEEPER_IMAGE_MEMORY && !files_only;

    (void) k;
    if (memory && guest_check_version(&load_vm_kind, meta, err) < 0)
        return -1;
    return check_limits(limits, &meta->image.sandbox.limits, !memory, err);
}

/* ---- its disk ---- */

static int copy_disk(struct worker *w, const struct keeper_request *r, struct err *err)
{
    const struct host *host = w->keeper->host;
    auto_close int lock = -1;
    struct image_meta meta;

    if (image_lock(&host->images, r->image, false, &lock, err) < 0 ||
        image_read(&host->images, r->image, &meta, err) < 0)
        return -1;
    return save_copy_disk(&host->disks, meta.layers.number[0], w->sandbox.layers.number[0], err);
}

static void on_copied(struct keeper *k, struct sandbox *s, struct worker_result *r)
{
    if (r->err.kind != ERR_NONE)
        sandbox_fail(k, s, &r->err);
    else
        disks_open_own(k, s);
}

static void order_disks(struct keeper *k, struct sandbox *s, const struct image_meta *meta)
{
    struct keeper_request r;
    struct err err;

    s->template_disks = meta->template_disks;
    if (strcmp(s->image, s->info.id) == 0) {
        disks_over_image(k, s, meta);
        return;
    }
    keeper_request_init(&r, KEEPER_LOAD);
    memcpy(r.image, s->image, sizeof r.image);
    s->layers = meta->layers; /* those below its own are another isolation's, which never change */
    if (disk_new_number(&s->layers.number[0], &err) < 0 ||
        worker_start(k, s, "cove-copy-disk", copy_disk, &r, on_copied, &err) < 0)
        sandbox_fail(k, s, &err);
}

/* ---- the keeper's half ---- */

int load_vm(struct keeper *k, const struct keeper_request *r, const struct image_meta *meta,
            struct sandbox **ret, struct err *err)
{
    static const struct load_way way = { check, order_disks };

    return load_begin_by(k, r, meta, &way, ret, err);
}

const struct guest_kind load_vm_kind = { .program = "QEMU",
                                         .version = parts_qemu,
                                         .file = MACHINE_PROGRAM VM_QEMU,
                                         .disk = &MACHINE_DISK[1],
                                         .beside = VM_KERNEL_MEMORY + DEVICES_MAX,
                                         .machine = load_machine,
                                         .done = load_machine_done };
