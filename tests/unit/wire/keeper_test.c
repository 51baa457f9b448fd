#include "wire/keeper.h"

#include "base/own.h"
#include "check.h"

#define VOLUME "v01234567890123456789"

static struct keeper_request request_of(enum keeper_op op)
{
    struct keeper_request r;

    keeper_request_init(&r, op);
    if (keeper_ops[op].needs_sandbox || op == KEEPER_LOAD)
        strcpy(r.sandbox, "i01234567890123456789");
    if (op == KEEPER_CREATE) {
        strcpy(r.template, "host");
        limits_default(&r.limits);
    }
    if (keeper_ops[op].needs_image)
        strcpy(r.image, "i01234567890123456789");
    if (keeper_ops[op].volume == VOLUME_FIELD_MUST)
        strcpy(r.volumes[0].volume, VOLUME);
    if (op == KEEPER_VOLUME_MAKE) {
        r.limits.disk_bytes = VOLUME_BYTES_LEAST;
        r.limits.disk_inodes = volume_inodes_default(VOLUME_BYTES_LEAST);
    }
    if (op == KEEPER_TEMPLATE)
        (void) strcpy(r.template, "base");
    return r;
}

static void refused(const struct keeper_request *r, size_t len, enum err_kind kind,
                    const char *wording)
{
    struct err err = { 0 };

    CHECK_INT(keeper_request_check(r, len, &err), -1);
    CHECK_STR(err.msg, wording);
    CHECK_INT(err.kind, kind);
}

#define REFUSED(r, kind, wording) refused(&(r), sizeof(r), kind, wording)

static void every_op_has_a_name_and_a_plain_request_passes(void)
{
    for (int op = 0; op < KEEPER_OP_COUNT; op++) {
        struct keeper_request r = request_of((enum keeper_op) op);
        struct err err;

        CHECK(keeper_ops[op].name && keeper_ops[op].name[0]);
        CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    }
}

static void a_request_of_another_size_or_magic_is_none(void)
{
    struct keeper_request r = request_of(KEEPER_HELLO);

    refused(&r, sizeof r - 1, ERR_PROTOCOL, "not a request");
    refused(&r, sizeof r + 1, ERR_PROTOCOL, "not a request");
    refused(&r, 0, ERR_PROTOCOL, "not a request");
    r.magic ^= 1;
    REFUSED(r, ERR_PROTOCOL, "not a request");
}

static void another_version_is_told_ours(void)
{
    struct keeper_request r = request_of(KEEPER_HELLO);

    r.version = 77;
    REFUSED(r, ERR_PROTOCOL, "version 77, this keeper speaks 1");
}

static void a_template_that_is_asked_for_has_a_name(void)
{
    struct keeper_request r = request_of(KEEPER_TEMPLATE);

    (void) strcpy(r.template, "../x");
    REFUSED(r, ERR_INVALID, "template: not a name (a-z, 0-9, inner '-', '_', '.')");
    memset(r.template, 0, sizeof r.template);
    REFUSED(r, ERR_INVALID, "template: not a name (a-z, 0-9, inner '-', '_', '.')");
    r = request_of(KEEPER_TEMPLATES);
    (void) strcpy(r.template, "base");
    REFUSED(r, ERR_INVALID, "templates takes no fields of create");
}

static void an_unknown_op_is_refused(void)
{
    struct keeper_request r = request_of(KEEPER_HELLO);

    char wording[40];

    r.op = KEEPER_OP_COUNT;
    (void) snprintf(wording, sizeof wording, "unknown request %d", KEEPER_OP_COUNT);
    REFUSED(r, ERR_PROTOCOL, wording);
    r.op = UINT32_MAX;
    REFUSED(r, ERR_PROTOCOL, "unknown request 4294967295");
}

static void reserved_fields_stay_zero(void)
{
    struct keeper_request r = request_of(KEEPER_CREATE);

    r.cursor = 5;
    REFUSED(r, ERR_PROTOCOL, "create: reserved field set");
}

static void an_isolation_is_for_create_and_has_a_known_number(void)
{
    struct keeper_request r = request_of(KEEPER_CREATE);
    struct err err;

    for (uint32_t i = 0; i < ISOLATION_COUNT; i++) {
        r.isolation = i;
        CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    }
    r.isolation = ISOLATION_COUNT;
    REFUSED(r, ERR_INVALID, "isolation: unknown number 4");
    r.isolation = UINT32_MAX;
    REFUSED(r, ERR_INVALID, "isolation: unknown number 4294967295");
    r = request_of(KEEPER_GET);
    r.isolation = ISOLATION_VM;
    REFUSED(r, ERR_PROTOCOL, "get takes no isolation");
    r = request_of(KEEPER_LOAD);
    r.isolation = ISOLATION_VM;
    REFUSED(r, ERR_PROTOCOL, "load takes no isolation");
}

/* The struct is part of journals and images that older versions wrote. */
static void a_sandbox_of_an_older_version_is_a_jail(void)
{
    struct keeper_sandbox s = { .isolation = ISOLATION_VM };
    uint32_t old_disk_kind = DISK_IMAGE;

    memcpy((char *) &s + offsetof(struct keeper_sandbox, disk_kind), &old_disk_kind,
           sizeof old_disk_kind);
    CHECK_INT(s.disk_kind, DISK_IMAGE);
    CHECK_INT(s.isolation, ISOLATION_JAIL);
    CHECK_INT(offsetof(struct keeper_sandbox, created_ms),
              offsetof(struct keeper_sandbox, disk_kind) + sizeof old_disk_kind);
}

static void every_isolation_has_a_name_that_is_read_back(void)
{
    uint32_t n = 99;
    struct err err;

    for (uint32_t i = 0; i < ISOLATION_COUNT; i++) {
        CHECK_INT(isolation_parse(isolation_name(i), &n, &err), 0);
        CHECK_INT(n, i);
    }
    CHECK_INT(isolation_parse("docker", &n, &err), -1);
    CHECK_INT(err.kind, ERR_INVALID);
    CHECK_STR(err.msg, "isolation: unknown 'docker', use one of: jail, gvisor, vm, vm-emulated");
    CHECK_INT(n, ISOLATION_COUNT - 1);
    CHECK_INT(isolation_parse("", &n, &err), -1);
    CHECK_STR(isolation_name(ISOLATION_COUNT), "unknown");
}

static void a_cursor_is_for_lists(void)
{
    struct keeper_request r = request_of(KEEPER_LIST);
    struct err err;

    r.cursor = 5;
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
}

static void texts_end_and_nothing_hides_behind_the_end(void)
{
    static const size_t at[] = { offsetof(struct keeper_request, sandbox),
                                 offsetof(struct keeper_request, name),
                                 offsetof(struct keeper_request, template),
                                 offsetof(struct keeper_request, hostname) };

    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        struct keeper_request r = request_of(KEEPER_CREATE);
        char *text = (char *) &r + at[i];

        memset(text, 'a', KEEPER_NAME_MAX);
        REFUSED(r, ERR_PROTOCOL, "create: a text does not end");
        memset(text, 0, KEEPER_NAME_MAX);
        text[0] = 'a';
        text[KEEPER_NAME_MAX - 1] = 'x';
        REFUSED(r, ERR_PROTOCOL, "create: a text does not end");
    }
}

static void create_takes_an_id_not_a_name(void)
{
    struct keeper_request r = request_of(KEEPER_CREATE);

    memset(r.sandbox, 0, sizeof r.sandbox);
    REFUSED(r, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
    strcpy(r.sandbox, "box");
    REFUSED(r, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
    strcpy(r.sandbox, "i/../../../../../etc/x");
    REFUSED(r, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
}

static void a_name_is_a_name_and_not_like_an_id(void)
{
    static const char *const bad[] = { "Box", "a/b", "..", "-x", "i99999999999999999999" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct keeper_request r = request_of(KEEPER_CREATE);

        strcpy(r.name, bad[i]);
        REFUSED(r, ERR_INVALID,
                "name: not a name (a-z, 0-9, inner '-', '_', '.', at most 63, unlike an id)");
    }
}

static void a_template_is_a_name_never_a_path(void)
{
    static const char *const bad[] = { "", "../host", "/etc", "host/", "." };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct keeper_request r = request_of(KEEPER_CREATE);

        memset(r.template, 0, sizeof r.template);
        strcpy(r.template, bad[i]);
        REFUSED(r, ERR_INVALID, "template: not a name (a-z, 0-9, inner '-', '_', '.')");
    }
}

static void a_hostname_is_a_name(void)
{
    struct keeper_request r = request_of(KEEPER_CREATE);

    strcpy(r.hostname, "a b");
    REFUSED(r, ERR_INVALID, "hostname: not a name (a-z, 0-9, inner '-', '_', '.')");
}

static void unknown_flags_are_refused(void)
{
    struct keeper_request r = request_of(KEEPER_CREATE);

    r.flags = KEEPER_FLAG_ALL + 1;
    REFUSED(r, ERR_INVALID, "flags: unknown bits");
}

static void what_is_made_for_the_pool_is_for_nobody(void)
{
    static const char why[] = "flags: a sandbox made for the pool has no owner yet";
    struct keeper_request r = request_of(KEEPER_CREATE);
    struct err err;

    r.flags = KEEPER_FLAG_POOLED | KEEPER_FLAG_ROOT;
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    r.flags = KEEPER_FLAG_POOLED | KEEPER_FLAG_TIED;
    REFUSED(r, ERR_INVALID, why);
    r.flags = KEEPER_FLAG_POOLED | KEEPER_FLAG_TAKE;
    REFUSED(r, ERR_INVALID, why);
    r.flags = KEEPER_FLAG_POOLED;
    strcpy(r.name, "mine");
    REFUSED(r, ERR_INVALID, why);
    r = request_of(KEEPER_LIST);
    r.flags = KEEPER_FLAG_POOLED;
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    r.flags = KEEPER_FLAG_TAKE;
    REFUSED(r, ERR_INVALID, "list takes no fields of create");
    r = request_of(KEEPER_GET);
    r.flags = KEEPER_FLAG_POOLED;
    REFUSED(r, ERR_INVALID, "get takes no fields of create");
}

static void other_ops_name_a_sandbox(void)
{
    static const char *const bad[] = { "", "..", "a/b", "A" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct keeper_request r = request_of(KEEPER_DESTROY);

        memset(r.sandbox, 0, sizeof r.sandbox);
        strcpy(r.sandbox, bad[i]);
        REFUSED(r, ERR_INVALID, "sandbox: neither an id nor a name");
    }
}

static void ops_without_a_sandbox_take_none(void)
{
    struct keeper_request r = request_of(KEEPER_HELLO);

    strcpy(r.sandbox, "box");
    REFUSED(r, ERR_INVALID, "sandbox: must be empty for hello");
}

static void fields_of_create_are_for_create(void)
{
    struct keeper_request r;
    struct err err;

    r = request_of(KEEPER_GET), strcpy(r.name, "x");
    REFUSED(r, ERR_INVALID, "get takes no fields of create");
    r = request_of(KEEPER_GET), strcpy(r.template, "x");
    REFUSED(r, ERR_INVALID, "get takes no fields of create");
    r = request_of(KEEPER_FREEZE), strcpy(r.hostname, "x");
    REFUSED(r, ERR_INVALID, "freeze takes no fields of create");
    r = request_of(KEEPER_TIE), r.flags = KEEPER_FLAG_TIED;
    REFUSED(r, ERR_INVALID, "tie takes no fields of create");
    r = request_of(KEEPER_STATS), r.limits.ptys = 1;
    REFUSED(r, ERR_INVALID, "stats takes no fields of create");
    r = request_of(KEEPER_STATS), r.flags = KEEPER_STATS_BRIEF << 1;
    REFUSED(r, ERR_INVALID, "stats takes no fields of create");
    r = request_of(KEEPER_STATS), r.flags = KEEPER_STATS_BRIEF;
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    r = request_of(KEEPER_CONNECT), r.flags = KEEPER_STATS_BRIEF << 1;
    REFUSED(r, ERR_INVALID, "connect takes no fields of create");
    r = request_of(KEEPER_CONNECT), r.flags = KEEPER_STATS_BRIEF;
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
}

static void requests_about_images_take_an_id_and_what_they_need(void)
{
    struct keeper_request r = request_of(KEEPER_SAVE);

    memset(r.image, 0, sizeof r.image);
    strcpy(r.image, "../../etc");
    REFUSED(r, ERR_INVALID, "image: not an id ('i' and 20 of a-z, 0-9)");
    memset(r.image, 'i', sizeof r.image);
    REFUSED(r, ERR_PROTOCOL, "save: a text does not end");
    r = request_of(KEEPER_SAVE);
    memset(r.sandbox, 0, sizeof r.sandbox);
    REFUSED(r, ERR_INVALID, "sandbox: neither an id nor a name");
    r = request_of(KEEPER_SAVE);
    r.flags = KEEPER_SAVE_ALL + 1;
    REFUSED(r, ERR_INVALID, "flags: unknown bits");
    r = request_of(KEEPER_SAVE);
    r.limits.memory_bytes = 1;
    REFUSED(r, ERR_INVALID, "save takes no fields of create");
    r = request_of(KEEPER_LOAD);
    strcpy(r.volumes[0].volume, VOLUME);
    REFUSED(r, ERR_INVALID, "load takes no fields of create");
    r = request_of(KEEPER_LOAD);
    memset(r.sandbox, 0, sizeof r.sandbox);
    strcpy(r.sandbox, "a-name");
    REFUSED(r, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
    r = request_of(KEEPER_DROP);
    strcpy(r.owner, "somebody");
    REFUSED(r, ERR_INVALID, "drop takes nothing but an image");
    r = request_of(KEEPER_IMAGE);
    strcpy(r.name, "a-name");
    REFUSED(r, ERR_INVALID, "image takes no names");
    r = request_of(KEEPER_DESTROY);
    strcpy(r.image, "i01234567890123456789");
    REFUSED(r, ERR_INVALID, "destroy takes no image");
}

static void a_load_can_be_for_the_pool_or_out_of_it(void)
{
    struct keeper_request r = request_of(KEEPER_LOAD);
    struct err err;

    strcpy(r.sandbox, "i98765432109876543210");
    r.flags = KEEPER_FLAG_TAKE;
    strcpy(r.name, "a-name");
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    r.flags = KEEPER_FLAG_POOLED;
    REFUSED(r, ERR_INVALID, "flags: a sandbox made for the pool has no owner yet");
    memset(r.name, 0, sizeof r.name);
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    r.flags |= KEEPER_FLAG_TAKE;
    REFUSED(r, ERR_INVALID, "flags: a sandbox made for the pool has no owner yet");
    r.flags = KEEPER_FLAG_TAKE | KEEPER_LOAD_FILES;
    REFUSED(r, ERR_INVALID, "flags: there is no pool for files alone");
    r.flags = KEEPER_FLAG_LOADED;
    REFUSED(r, ERR_INVALID, "flags: unknown bits");
    r = request_of(KEEPER_LOAD); /* the paused sandbox itself */
    r.flags = KEEPER_FLAG_TAKE;
    REFUSED(r, ERR_INVALID, "flags: there is no pool for a sandbox that is resumed");
}

static void requests_about_volumes_take_one_id_and_nothing_else(void)
{
    struct keeper_request r = request_of(KEEPER_VOLUME_DROP);
    struct err err;

    r.volumes[0].volume[0] = '\0';
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), -1);
    r = request_of(KEEPER_VOLUME_DROP);
    memcpy(r.volumes[0].volume, "../../../../etc/passwd", 22);
    REFUSED(r, ERR_INVALID, "volume: not an id ('v' and 20 of a-z, 0-9)");
    memset(r.volumes[0].volume, 'v', sizeof r.volumes[0].volume);
    REFUSED(r, ERR_PROTOCOL, "volume drop: a text does not end");
    r = request_of(KEEPER_VOLUME_DROP);
    strcpy(r.volumes[0].path, "/a");
    REFUSED(r, ERR_INVALID, "volume drop takes one volume's id");
    r = request_of(KEEPER_VOLUME_DROP);
    strcpy(r.volumes[3].volume, VOLUME);
    REFUSED(r, ERR_INVALID, "volume drop takes one volume's id");
    r = request_of(KEEPER_VOLUME_USERS);
    r.limits.disk_bytes = 1;
    REFUSED(r, ERR_INVALID, "volume users takes no fields of create");
    r = request_of(KEEPER_VOLUME_MAKE);
    r.limits.memory_bytes = 1;
    REFUSED(r, ERR_INVALID, "volume make takes no fields of create");
    r = request_of(KEEPER_VOLUME_MAKE);
    r.limits.disk_bytes++;
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), -1);
    CHECK_INT(err.kind, ERR_LIMIT);
    r = request_of(KEEPER_GET);
    strcpy(r.volumes[0].volume, VOLUME);
    REFUSED(r, ERR_INVALID, "volume: not an id ('v' and 20 of a-z, 0-9)");
}

static void volumes_of_a_create_are_checked(void)
{
    struct keeper_request r = request_of(KEEPER_CREATE);
    struct err err;

    strcpy(r.volumes[0].volume, VOLUME);
    strcpy(r.volumes[0].path, "/data");
    CHECK_INT(keeper_request_check(&r, sizeof r, &err), 0);
    strcpy(r.volumes[0].path, "/dev/x");
    REFUSED(r, ERR_INVALID, "path: nothing can be mounted in /dev");
}

static struct keeper_reply reply_of(enum keeper_op op)
{
    struct keeper_reply r;

    memset(&r, 0, sizeof r);
    r.magic = KEEPER_MAGIC;
    r.version = KEEPER_VERSION;
    r.op = op;
    return r;
}

static void a_reply_is_to_the_question_that_was_asked(void)
{
    struct keeper_reply r = reply_of(KEEPER_GET);
    struct err err;

    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_GET, &err), 0);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_LIST, &err), -1);
    CHECK_STR(err.msg, "the keeper answered something else");
    CHECK_INT(keeper_reply_check(&r, sizeof r - 1, KEEPER_GET, &err), -1);
    r.count = KEEPER_LIST_MAX + 1;
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_GET, &err), -1);
}

static void texts_of_a_reply_end(void)
{
    struct keeper_reply r = reply_of(KEEPER_GET);
    struct err err;

    memset(r.err.msg, 'x', sizeof r.err.msg);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_GET, &err), -1);
    CHECK_STR(err.msg, "the keeper's message does not end");
    r = reply_of(KEEPER_LIST);
    r.count = 3;
    memset(r.sandbox[2].name, 'x', sizeof r.sandbox[2].name);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_LIST, &err), -1);
    CHECK_STR(err.msg, "a text of the keeper does not end");
    r = reply_of(KEEPER_VOLUME_USERS);
    r.count = 1;
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_VOLUME_USERS, &err), 0);
    memset(r.user[0].path, 'x', sizeof r.user[0].path);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_VOLUME_USERS, &err), -1);
    r = reply_of(KEEPER_TEMPLATES);
    r.count = 1;
    memset(r.template[0], 'x', sizeof r.template[0]);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_TEMPLATES, &err), -1);
    r = reply_of(KEEPER_TEMPLATE);
    r.count = 1;
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_TEMPLATE, &err), 0);
    memset(r.about.digest, 'x', sizeof r.about.digest);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_TEMPLATE, &err), -1);

    r = reply_of(KEEPER_VOLUME_LIST);
    r.count = 1;
    memset(r.volume[0].id, 'x', sizeof r.volume[0].id);
    CHECK_INT(keeper_reply_check(&r, sizeof r, KEEPER_VOLUME_LIST, &err), -1);
}

static void names_of_states_and_disks_never_end_in_nothing(void)
{
    for (uint32_t i = 0; i < LIFE_COUNT; i++)
        CHECK(keeper_life_name(i)[0]);
    CHECK_STR(keeper_life_name(LIFE_RUNNING), "running");
    CHECK_STR(keeper_life_name(LIFE_COUNT), "unknown");
    CHECK_STR(keeper_disk_name(DISK_IMAGE), "image");
    CHECK_STR(keeper_disk_name(UINT32_MAX), "unknown");
}

CHECK_MAIN(T(every_op_has_a_name_and_a_plain_request_passes),
           T(a_request_of_another_size_or_magic_is_none), T(another_version_is_told_ours),
           T(an_unknown_op_is_refused), T(a_template_that_is_asked_for_has_a_name),
           T(reserved_fields_stay_zero), T(an_isolation_is_for_create_and_has_a_known_number),
           T(a_sandbox_of_an_older_version_is_a_jail),
           T(every_isolation_has_a_name_that_is_read_back), T(a_cursor_is_for_lists),
           T(texts_end_and_nothing_hides_behind_the_end), T(create_takes_an_id_not_a_name),
           T(a_name_is_a_name_and_not_like_an_id), T(a_template_is_a_name_never_a_path),
           T(a_hostname_is_a_name), T(unknown_flags_are_refused),
           T(what_is_made_for_the_pool_is_for_nobody), T(other_ops_name_a_sandbox),
           T(ops_without_a_sandbox_take_none), T(fields_of_create_are_for_create),
           T(requests_about_images_take_an_id_and_what_they_need),
           T(a_load_can_be_for_the_pool_or_out_of_it),
           T(requests_about_volumes_take_one_id_and_nothing_else),
           T(volumes_of_a_create_are_checked), T(a_reply_is_to_the_question_that_was_asked),
           T(texts_of_a_reply_end), T(names_of_states_and_disks_never_end_in_nothing))
