#include "base/err.h"

#include "check.h"

#include <errno.h>

static void every_kind_has_a_name_a_status_an_exit_code_and_a_sentence(void)
{
    for (uint32_t kind = 0; kind < ERR_KIND_COUNT; kind++) {
        const struct err_kind_info *info = err_kind_info(kind);

        CHECK(info->name && info->name[0]);
        CHECK(info->help && info->help[0]);
        CHECK(info->http_status >= 200 && info->http_status < 600);
        CHECK((kind == ERR_NONE) == (info->exit_code == 0));
    }
}

static void no_two_kinds_share_a_name_or_an_exit_code(void)
{
    for (uint32_t a = 0; a < ERR_KIND_COUNT; a++)
        for (uint32_t b = a + 1; b < ERR_KIND_COUNT; b++) {
            CHECK(strcmp(err_kind_info(a)->name, err_kind_info(b)->name) != 0);
            CHECK(err_kind_info(a)->exit_code != err_kind_info(b)->exit_code);
        }
}

static void exit_codes_keep_clear_of_signals_and_shells(void)
{
    for (uint32_t kind = 1; kind < ERR_KIND_COUNT; kind++) {
        uint8_t code = err_kind_info(kind)->exit_code;

        CHECK((code >= 64 && code < 125) || kind == ERR_OOM);
    }
    CHECK_INT(err_kind_info(ERR_TIMEOUT)->exit_code, 124);
    CHECK_INT(err_kind_info(ERR_OOM)->exit_code, 137);
}

static void a_number_that_is_no_kind_counts_as_internal(void)
{
    CHECK(err_kind_info(ERR_KIND_COUNT) == err_kind_info(ERR_INTERNAL));
    CHECK(err_kind_info(UINT32_MAX) == err_kind_info(ERR_INTERNAL));
}

static void set_formats_and_fails(void)
{
    struct err err;

    CHECK_INT(err_set(&err, ERR_LIMIT, "limit '%s': %d", "memory", 7), -1);
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK_STR(err.msg, "limit 'memory': 7");
}

static void sys_adds_the_kernels_word_and_finds_the_kind(void)
{
    struct err err;

    CHECK_INT(err_sys(&err, ENOENT, "open %s", "memory.max"), -1);
    CHECK_INT(err.kind, ERR_NO_PATH);
    CHECK_STR(err.msg, "open memory.max: No such file or directory");
}

static void wrap_puts_context_in_front_and_keeps_the_kind(void)
{
    struct err err;

    (void) err_set(&err, ERR_DISK_FULL, "no space");
    CHECK_INT(err_wrap(&err, "cgroup '%s'", "k7f2"), -1);
    CHECK_INT(err.kind, ERR_DISK_FULL);
    CHECK_STR(err.msg, "cgroup 'k7f2': no space");
}

static void what_does_not_fit_is_cut_and_ends(void)
{
    char text[2 * ERR_MSG_MAX];
    struct err err;

    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void) err_set(&err, ERR_INVALID, "%s", text);
    CHECK_INT(strlen(err.msg), ERR_MSG_MAX - 1);
    (void) err_wrap(&err, "outer");
    CHECK_INT(strlen(err.msg), ERR_MSG_MAX - 1);
    CHECK(strncmp(err.msg, "outer: yyy", 10) == 0);
    (void) err_sys(&err, ENOENT, "%s", text);
    CHECK_INT(strlen(err.msg), ERR_MSG_MAX - 1);
    (void) err_wrap(&err, "%s", text);
    CHECK_INT(strlen(err.msg), ERR_MSG_MAX - 1);
}

static void errnos_stand_for_kinds(void)
{
    static const struct {
        int errnum;
        enum err_kind kind;
    } cases[] = {
        { ENOENT, ERR_NO_PATH },    { EEXIST, ERR_EXISTS },       { EACCES, ERR_DENIED },
        { EPERM, ERR_DENIED },      { EROFS, ERR_DENIED },        { ENOSPC, ERR_DISK_FULL },
        { EDQUOT, ERR_DISK_FULL },  { ENOMEM, ERR_NO_MEMORY },    { ENOTDIR, ERR_NOT_DIR },
        { EISDIR, ERR_IS_DIR },     { ENXIO, ERR_NOT_FILE },      { EMFILE, ERR_TOO_MANY },
        { EPIPE, ERR_UNAVAILABLE }, { ENOTEMPTY, ERR_NOT_EMPTY }, { EIO, ERR_INTERNAL },
        { 0, ERR_INTERNAL },        { 99999, ERR_INTERNAL },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(err_kind_of_errno(cases[i].errnum), cases[i].kind);
}

CHECK_MAIN(T(every_kind_has_a_name_a_status_an_exit_code_and_a_sentence),
           T(no_two_kinds_share_a_name_or_an_exit_code),
           T(exit_codes_keep_clear_of_signals_and_shells),
           T(a_number_that_is_no_kind_counts_as_internal), T(set_formats_and_fails),
           T(sys_adds_the_kernels_word_and_finds_the_kind),
           T(wrap_puts_context_in_front_and_keeps_the_kind), T(what_does_not_fit_is_cut_and_ends),
           T(errnos_stand_for_kinds))
