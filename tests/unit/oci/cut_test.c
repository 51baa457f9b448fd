/* What overlayfs makes of the files is tested by tests/e2e/image_bases_test; here, where images are cut, and what each file has. */
#include "base/own.h"
#include "check.h"
#include "layers.h"
#include "oci/cut.h"

static struct merge merge;
static struct err err;
static int files[MERGE_BELOW_MAX + 1];
static size_t file_count;
static const unsigned char uuid[16] = "a test's image";

static int another_file(void)
{
    files[file_count] = memfd_create("image", MFD_CLOEXEC);
    return files[file_count++];
}

static void fresh(void)
{
    if (file_count > 0)
        merge_done(&merge);
    while (file_count > 0)
        own_close(&files[--file_count]);
    CHECK(merge_init(&merge, another_file(), &tree_limits_default, 64u << 20, &err) == 0);
}

static void cut(void)
{
    struct erofs_size size;

    CHECK(cut_finish(&merge, uuid, &size, &err) == 0);
    CHECK(cut_next(&merge, another_file(), &err) == 0);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static void add_written(const struct tree_node *dir, const char *path, char **out, size_t *count)
{
    for (const struct tree_node *node = dir->children; node; node = node->next) {
        char text[256];

        if (node->below)
            continue;
        (void) snprintf(text, sizeof text, "%s%s%s", path, node->name,
                        tree_is_dir(node)            ? "/"
                        : S_ISCHR(node->inode->mode) ? "!"
                                                     : "");
        out[(*count)++] = strdup(text);
        if (tree_is_dir(node))
            add_written(node, text, out, count);
    }
}

/* The names of the last file, sorted: "dir/ dir/file gone!". */
static const char *finished(void)
{
    static char out[1024];
    struct erofs_size size;
    char *names[64];
    size_t count = 0;

    CHECK(cut_finish(&merge, uuid, &size, &err) == 0);
    add_written(merge.tree.root, "", names, &count);
    qsort(names, count, sizeof names[0], by_text);
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(out);

        (void) snprintf(out + len, sizeof out - len, "%s%s", len ? " " : "", names[i]);
        free(names[i]);
    }
    return out;
}

static void an_image_is_cut_where_enough_is_below(void)
{
    CHECK(!cut_above(0, CUT_BYTES - 1, false));
    CHECK(cut_above(0, CUT_BYTES, false));
    CHECK(cut_above(MERGE_BELOW_MAX - 1, CUT_BYTES, false));
    CHECK(!cut_above(MERGE_BELOW_MAX, 100 * CUT_BYTES, false));
    CHECK(!cut_above(0, CUT_BYTES, true)); /* one large layer is one file */
    CHECK(cut_above(1, CUT_BYTES, true));  /* an image on all of this one shares all */
}

/* A cut depends on the layers below alone: an image with more layers is cut at the same places. */
static void more_layers_change_no_cut_below(void)
{
    static const uint64_t mib[] = { 10, 30, 1, 40, 31, 2, 500, 33, 7 };
    char cuts[ARRAY_LEN(mib) + 1][32] = { "" };

    for (size_t count = 1; count <= ARRAY_LEN(mib); count++) {
        uint64_t bytes = 0;
        unsigned made = 0;

        for (size_t i = 0; i < count; i++) {
            bytes += mib[i] << 20;
            if (!cut_above(made, bytes, i + 1 == count))
                continue;
            (void) snprintf(cuts[count] + 2 * made, 3, "%zu ", i + 1);
            made++;
            bytes = 0;
        }
        CHECK(count < 4 || strncmp(cuts[count], cuts[count - 1], strlen(cuts[count - 1])) == 0);
    }
    CHECK_STR(cuts[1], "");
    CHECK_STR(cuts[2], "");
    CHECK_STR(cuts[ARRAY_LEN(mib)], "2 4 6 ");
}

static void a_file_above_has_what_changed(void)
{
    struct made m = { 0 };

    fresh();
    made_file(&m, "same/file", "same");
    made_file(&m, "dir/kept", "kept");
    made_file(&m, "dir/changed", "old");
    made_file(&m, "mode/file", "x");
    CHECK(made_merge(&merge, &m, &err) == 0);
    cut();
    made_file(&m, "dir/changed", "new");
    made_dir(&m, "mode", 0700);
    made_file(&m, "new/file", "x");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(finished(), "dir/ dir/changed mode/ new/ new/file");
    CHECK_INT(merge.tree.inodes, 10);
    CHECK_STR(made_text(&merge, "same/file"), "same");
    CHECK_STR(made_text(&merge, "dir/changed"), "new");
}

static void names_that_are_gone_are_hidden(void)
{
    struct made m = { 0 };

    fresh();
    made_file(&m, "a/one", "1");
    made_file(&m, "a/two", "2");
    made_file(&m, "tree/deep/x", "x");
    made_file(&m, "again/old/x", "x");
    made_file(&m, "to-file/x", "x");
    made_file(&m, "to-dir", "x");
    CHECK(made_merge(&merge, &m, &err) == 0);
    cut();
    made_file(&m, "a/.wh.one", "");
    made_file(&m, ".wh.tree", "");
    made_file(&m, ".wh.again", "");
    made_file(&m, "again/new", "n");
    made_file(&m, "to-file", "f");
    made_dir(&m, "to-dir", 0755);
    made_file(&m, "to-dir/x", "d");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(finished(), "a/ a/one! again/ again/new again/old! to-dir/ to-dir/x to-file tree!");
}

/* What is hidden once is no name of the files below any more; and a name that came in between is one. */
static void a_third_file_knows_both_below(void)
{
    struct made m = { 0 };

    fresh();
    made_file(&m, "dir/x", "x");
    made_file(&m, "gone", "g");
    CHECK(made_merge(&merge, &m, &err) == 0);
    cut();
    made_file(&m, "dir", "a file");
    made_file(&m, ".wh.gone", "");
    made_file(&m, "between", "b");
    CHECK(made_merge(&merge, &m, &err) == 0);
    cut();
    made_dir(&m, "dir", 0755);
    made_file(&m, "dir/y", "y");
    made_file(&m, ".wh.between", "");
    made_file(&m, "tiny", "t");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(finished(), "between! dir/ dir/y tiny");
}

static void all_names_of_a_file_stay_one_file(void)
{
    struct made m = { 0 };
    char text[3001] = "";

    memset(text, 'n', sizeof text - 1);
    fresh();
    made_file(&m, "names/a", text);
    made_hard(&m, "names/b", "names/a");
    made_file(&m, "pair/a", "pair");
    made_hard(&m, "pair/b", "pair/a");
    made_file(&m, "moved/a", "moved");
    made_hard(&m, "moved/b", "moved/a");
    made_file(&m, "alone", "alone");
    CHECK(made_merge(&merge, &m, &err) == 0);
    cut();
    made_hard(&m, "across", "names/b");
    made_file(&m, "pair/.wh.b", "");
    made_file(&m, "moved/.wh.b", "");
    made_hard(&m, "moved/c", "moved/a");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(finished(),
              "across moved/ moved/a moved/b! moved/c names/ names/a names/b pair/ pair/a pair/b!");
    CHECK_STR(made_text(&merge, "across"), text); /* which was brought along */
    CHECK_STR(made_text(&merge, "alone"), "alone");
}

static void the_same_layers_give_the_same_file_below(void)
{
    static char first[1 << 16], second[sizeof first];
    ssize_t len = 0;

    for (int round = 0; round < 2; round++) {
        struct made m = { 0 };

        fresh();
        made_file(&m, "dir/a", "a");
        made_link(&m, "link", "dir/a");
        CHECK(made_merge(&merge, &m, &err) == 0);
        cut();
        made_file(&m, round ? "one" : "two", "above");
        CHECK(made_merge(&merge, &m, &err) == 0);
        (void) finished();
        len = pread(files[0], round ? second : first, sizeof first, 0);
        CHECK(len > 0);
    }
    CHECK(memcmp(first, second, (size_t) len) == 0);
}

/* Whiteouts are as many as there were names, whatever the limits of an image are. */
static void hiding_is_not_limited(void)
{
    static const struct tree_limits limits = { 20, 5, 10, 1000 };
    struct made m = { 0 };
    char path[32];

    fresh();
    merge.tree.limits = limits;
    for (int i = 0; i < 5; i++) {
        (void) snprintf(path, sizeof path, "dir/old%d", i);
        made_file(&m, path, "x");
    }
    CHECK(made_merge(&merge, &m, &err) == 0);
    cut();
    made_file(&m, "dir/.wh..wh..opq", "");
    for (int i = 0; i < 5; i++) {
        (void) snprintf(path, sizeof path, "dir/new%d", i);
        made_file(&m, path, "x");
    }
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(finished(), "dir/ dir/new0 dir/new1 dir/new2 dir/new3 dir/new4 dir/old0! dir/old1! "
                          "dir/old2! dir/old3! dir/old4!");
}

CHECK_MAIN(T(an_image_is_cut_where_enough_is_below), T(more_layers_change_no_cut_below),
           T(a_file_above_has_what_changed), T(names_that_are_gone_are_hidden),
           T(a_third_file_knows_both_below), T(all_names_of_a_file_stay_one_file),
           T(the_same_layers_give_the_same_file_below), T(hiding_is_not_limited))
