/* Files: each operation is one connection to the sandbox's agent, which does it with the rights of the user inside. No
 * path is looked at here. */
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/ops/ops_own.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

/* The caller's sandbox, ready to be asked. Closed by done(). */
struct visit {
    struct link link;
    struct files_at at;
};

static int check_policy(struct ops *ops, const struct ops_file *file, const char *path,
                        enum policy_access access, struct err *err)
{
    struct policy_verdict verdict;

    if (policy_gate_path(ops->app, ops->caller, file->sandbox, path, access, &verdict, err) == 0)
        return 0;
    return caller_blame(ops->caller, path == file->path ? "path" : "to", verdict.rule, "policy");
}

static int begin(struct ops *ops, const struct ops_file *file, enum policy_access access,
                 struct visit *visit, struct err *err)
{
    if (ops_box_open(ops, file->sandbox, &visit->link, NULL, err) < 0)
        return -1;
    visit->at = (struct files_at){ .link = &visit->link,
                                   .sandbox = file->sandbox,
                                   .user = file->user,
                                   .as_root = file->as_root,
                                   .attr_prefix = file->attr_prefix,
                                   .attrs = file->attrs,
                                   .owner = file->owner,
                                   .group = file->group };
    if (check_policy(ops, file, file->path, access, err) == 0)
        return 0;
    ops_box_close(ops, &visit->link, -1, err);
    ops_audit(ops, access == POLICY_READ ? "file.read" : "file.write", file->sandbox, err);
    return -1;
}

/* action NULL: only looked at, not noted unless it was refused. */
static int done(struct ops *ops, const struct ops_file *file, struct visit *visit,
                const char *action, int result, const struct err *err)
{
    ops_box_close(ops, &visit->link, result, err);
    if (action)
        ops_audit(ops, action, file->sandbox, result < 0 ? err : NULL);
    return result;
}

int ops_file_stat(struct ops *ops, const struct ops_file *file, uint32_t flags,
                  struct file_info *ret, struct err *err)
{
    struct visit v;

    if (begin(ops, file, POLICY_READ, &v, err) < 0)
        return -1;
    return done(ops, file, &v, NULL, files_stat(&v.at, file->path, flags, ret, err), err);
}

/* ---- lists: what may not be read is not shown either ---- */

struct sifted {
    struct gate_sieve sieve;
    bool named; /* one entry, by the name that was judged already */
    exec_item_fn each;
    void *context;
};

static int sift(void *context, const struct agent_reply *item, struct err *err)
{
    struct sifted *s = context;

    if (!s->named && item->path && !policy_gate_sieve_passes(&s->sieve, item->path))
        return 0;
    return s->each(s->context, item, err);
}

typedef int lister_fn(const struct files_at *at, const struct agent_request *request,
                      exec_item_fn each, void *context, bool *ret_truncated, struct err *err);

static int list_sifted(struct ops *ops, const struct ops_file *file, lister_fn *lister,
                       const struct agent_request *request, exec_item_fn each, void *context,
                       bool *ret_truncated, struct err *err)
{
    struct sifted sifted = { .named = request->op == AGENT_STAT, .each = each, .context = context };
    struct agent_request own = *request;
    struct visit v;
    int r;

    own.path = file->path;
    if (begin(ops, file, POLICY_READ, &v, err) < 0)
        return -1;
    r = policy_gate_sieve_open(ops->app, file->sandbox, &sifted.sieve, err);
    if (r == 0) {
        r = lister(&v.at, &own, sift, &sifted, ret_truncated, err);
        policy_gate_sieve_close(&sifted.sieve);
    }
    return done(ops, file, &v, NULL, r, err);
}

int ops_file_list(struct ops *ops, const struct ops_file *file, uint32_t depth, uint64_t limit,
                  exec_item_fn each, void *context, bool *ret_truncated, struct err *err)
{
    const struct agent_request request = { .op = AGENT_LIST, .depth = depth, .limit = limit };

    return list_sifted(ops, file, files_entries, &request, each, context, ret_truncated, err);
}

int ops_file_entries(struct ops *ops, const struct ops_file *file,
                     const struct agent_request *request, exec_item_fn each, void *context,
                     bool *ret_truncated, struct err *err)
{
    return list_sifted(ops, file, files_entries, request, each, context, ret_truncated, err);
}

int ops_file_search(struct ops *ops, const struct ops_file *file,
                    const struct agent_request *request, exec_item_fn each, void *context,
                    bool *ret_truncated, struct err *err)
{
    return list_sifted(ops, file, files_search, request, each, context, ret_truncated, err);
}

int ops_file_read(struct ops *ops, const struct ops_file *file, uint64_t offset, uint64_t length,
                  struct stream *ret, struct file_info *ret_info, struct err *err)
{
    struct visit v;
    int r;

    if (begin(ops, file, POLICY_READ, &v, err) < 0)
        return -1;
    r = files_read_open(&v.at, file->path, offset, length, ret, ret_info, err);
    return done(ops, file, &v, NULL, r, err);
}

int ops_file_write(struct ops *ops, const struct ops_file *file, uint32_t mode, uint32_t flags,
                   struct stream *ret, struct err *err)
{
    struct visit v;
    int r;

    if (quota_store(ops->caller, err) < 0 || begin(ops, file, POLICY_WRITE, &v, err) < 0)
        return -1;
    r = files_write_open(&v.at, file->path, mode, flags, ret, err);
    return done(ops, file, &v, r < 0 ? "file.write" : NULL, r, err);
}

int ops_file_write_end(struct ops *ops, const struct ops_file *file, struct stream *stream,
                       struct file_info *ret_info, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct file_info info = { .size = 0 };
    int r = files_write_end(stream, &info, err);

    facts.file_bytes = info.size;
    facts.refusal = r < 0 ? err : NULL;
    audit_note(ops->caller, "file.write", file->sandbox, &facts);
    if (r == 0 && ret_info)
        *ret_info = info;
    return r;
}

int ops_file_mkdir(struct ops *ops, const struct ops_file *file, uint32_t mode, uint32_t flags,
                   bool *ret_existed, struct err *err)
{
    struct visit v;
    int r;

    if (begin(ops, file, POLICY_WRITE, &v, err) < 0)
        return -1;
    r = files_mkdir(&v.at, file->path, mode, flags, ret_existed, err);
    return done(ops, file, &v, "file.mkdir", r, err);
}

int ops_file_move(struct ops *ops, const struct ops_file *file, const char *to, uint32_t flags,
                  struct err *err)
{
    struct visit v;
    int r;

    if (begin(ops, file, POLICY_WRITE, &v, err) < 0)
        return -1;
    r = check_policy(ops, file, to, POLICY_WRITE, err);
    if (r == 0)
        r = files_move(&v.at, file->path, to, flags, err);
    return done(ops, file, &v, "file.move", r, err);
}

int ops_file_remove(struct ops *ops, const struct ops_file *file, uint32_t flags,
                    uint64_t *ret_count, struct err *err)
{
    struct visit v;
    int r;

    if (begin(ops, file, POLICY_WRITE, &v, err) < 0)
        return -1;
    r = files_remove(&v.at, file->path, flags, ret_count, err);
    return done(ops, file, &v, "file.remove", r, err);
}

int ops_file_chmod(struct ops *ops, const struct ops_file *file, uint32_t mode, uint32_t flags,
                   struct err *err)
{
    struct visit v;
    int r;

    if (begin(ops, file, POLICY_WRITE, &v, err) < 0)
        return -1;
    r = files_chmod(&v.at, file->path, mode, flags, err);
    return done(ops, file, &v, "file.chmod", r, err);
}

/* ---- trees ---- */

static int may(struct ops *ops, const struct ops_file *file, const char *entry,
               enum policy_access access, struct err *err)
{
    char path[2 * AGENT_PATH_MAX];
    struct policy_verdict verdict;
    size_t len = strlen(file->path);

    (void) snprintf(path, sizeof path, "%s%s%s", file->path,
                    len > 0 && file->path[len - 1] == '/' ? "" : "/", entry);
    if (policy_gate_path(ops->app, ops->caller, file->sandbox, path, access, &verdict, err) == 0)
        return 0;
    (void) err_wrap(err, "the archive's entry '%.80s'", entry);
    return caller_blame(ops->caller, "path", verdict.rule, "policy");
}

int ops_file_pack_may(struct ops *ops, const struct ops_file *file, const char *entry,
                      struct err *err)
{
    return may(ops, file, entry, POLICY_READ, err);
}

int ops_file_unpack_may(struct ops *ops, const struct ops_file *file, const char *entry,
                        struct err *err)
{
    return may(ops, file, entry, POLICY_WRITE, err);
}

int ops_file_pack(struct ops *ops, const struct ops_file *file, uint32_t flags, struct stream *ret,
                  struct file_info *ret_info, struct err *err)
{
    struct visit v;

    if (begin(ops, file, POLICY_READ, &v, err) < 0)
        return -1;
    return done(ops, file, &v, NULL, files_pack_open(&v.at, file->path, flags, ret, ret_info, err),
                err);
}

int ops_file_unpack(struct ops *ops, const struct ops_file *file, uint32_t flags,
                    struct stream *ret, struct err *err)
{
    struct visit v;
    int r;

    if (quota_store(ops->caller, err) < 0 || begin(ops, file, POLICY_WRITE, &v, err) < 0)
        return -1;
    r = files_unpack_open(&v.at, file->path, flags, ret, err);
    return done(ops, file, &v, r < 0 ? "file.unpack" : NULL, r, err);
}

int ops_file_unpack_end(struct ops *ops, const struct ops_file *file, struct stream *stream,
                        const struct err *failed, uint64_t *ret_entries, uint64_t *ret_bytes,
                        struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t entries = 0, bytes = 0;
    int r = failed ? -1 : files_unpack_end(stream, &entries, &bytes, err);

    facts.file_bytes = bytes;
    facts.refusal = r < 0 ? (failed ? failed : err) : NULL;
    audit_note(ops->caller, "file.unpack", file->sandbox, &facts);
    if (r < 0)
        return -1;
    *ret_entries = entries;
    *ret_bytes = bytes;
    return 0;
}

int ops_file_watch(struct ops *ops, const struct ops_file *file, uint32_t flags, struct stream *ret,
                   struct err *err)
{
    struct visit v;

    if (begin(ops, file, POLICY_READ, &v, err) < 0)
        return -1;
    return done(ops, file, &v, NULL, files_watch_open(&v.at, file->path, flags, ret, err), err);
}
