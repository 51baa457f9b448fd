/* The manifest of a backup, before anybody knows who wrote it. Beyond not crashing: every path is one that a restore may write, no path
 * is there twice, and written out again it reads as the same. */
#include "backup/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void check(struct backup_manifest *m)
{
    static const unsigned char key[SHA256_LEN];
    struct backup_manifest again;
    char *text = NULL;
    size_t len = 0;
    struct err err;

    for (size_t i = 0; i < m->file_count; i++) {
        must(backup_manifest_path_ok(m->files[i].path) && !strstr(m->files[i].path, "../"));
        must(m->files[i].path[0] != '/' && m->files[i].mode <= 0777);
        must(backup_manifest_find(m, m->files[i].path) == &m->files[i]);
    }
    must(backup_manifest_write(m, key, &text, &len, &err) == 0);
    must(backup_manifest_check(text, len, key, &err) == 0);
    must(backup_manifest_parse(text, len, &again, &err) == 0);
    must(again.file_count == m->file_count && again.tree_count == m->tree_count);
    backup_manifest_done(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct backup_manifest m;
    struct err err = { 0 };

    if (backup_manifest_parse((const char *) data, size, &m, &err) < 0) {
        must(err.kind != ERR_NONE && err.msg[0]);
        return 0;
    }
    check(&m);
    backup_manifest_done(&m);
    return 0;
}
