#include "check.h"

#include "base/own.h"
#include "oci/document.h"
#include "oci/reference.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA "sha256:" HEX

static struct err err;

static const char *read_name(const char *text)
{
    static char out[1200];
    struct reference r;

    if (reference_parse(text, &r, &err) < 0)
        return "refused";
    reference_text(&r, out, sizeof out);
    return out;
}

static void names_are_read_as_docker_reads_them(void)
{
    CHECK_STR(read_name("python"), "docker.io/library/python:latest");
    CHECK_STR(read_name("python:3.12-slim"), "docker.io/library/python:3.12-slim");
    CHECK_STR(read_name("me/app"), "docker.io/me/app:latest");
    CHECK_STR(read_name("localhost/app"), "localhost/app:latest");
    CHECK_STR(read_name("localhost:5000/a/b_c:T"), "localhost:5000/a/b_c:T");
    CHECK_STR(read_name("r.example.com/a@" SHA), "r.example.com/a@" SHA);
    CHECK_STR(read_name("r.example.com/a:1@" SHA), "r.example.com/a:1@" SHA);
}

static void names_that_are_none_are_refused(void)
{
    static const char *const bad[] = { "",
                                       "A",
                                       "a//b",
                                       "a/",
                                       "/a",
                                       "a:",
                                       "a:.x",
                                       "a@sha256:12",
                                       "-a",
                                       "a/../b",
                                       "r.example.com:99999999/a",
                                       "a b",
                                       "a\nb",
                                       "r.example.com/",
                                       "../a" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_STR(read_name(bad[i]), "refused");
}

static void templates_are_named_after_images(void)
{
    struct reference r;
    char out[256];

    CHECK(reference_parse("r.example.com/me/app", &r, &err) == 0);
    reference_template_name(&r, out, sizeof out);
    CHECK_STR(out, "app");
    CHECK(reference_parse("python:3.12-Slim", &r, &err) == 0);
    reference_template_name(&r, out, sizeof out);
    CHECK_STR(out, "python-3.12-slim");
}

static int choose(const char *text, const char *tag, struct oci_descriptor *ret)
{
    return oci_index_choose(text, strlen(text), &oci_platform_here, tag, ret, &err);
}

#define ITEM(platform, more) "{\"digest\":\"" SHA "\",\"size\":7," platform more "}"
#define PLATFORM(os, arch)   "\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"}"

static void an_index_gives_the_image_of_this_platform(void)
{
    struct oci_descriptor d;

    CHECK(choose("{\"manifests\":[" ITEM(PLATFORM("linux", "arm64"),
                                         "") "," ITEM(PLATFORM("linux", "amd64"), "") "]}",
                 NULL, &d) == 0);
    CHECK_INT(d.size, 7);
    CHECK(choose("{\"manifests\":[" ITEM(PLATFORM("linux", "arm64"),
                                         "") "," ITEM(PLATFORM("unknown", "unknown"), "") "]}",
                 NULL, &d) == -1);
    CHECK_STR(err.msg, "there is no image for linux/amd64; there are: linux/arm64");
    CHECK(err.kind == ERR_UNSUPPORTED);
    CHECK(choose("{\"manifests\":[" ITEM("\"a\":1", "") "]}", NULL, &d) == 0);
    CHECK(choose("{\"manifests\":[" ITEM(
                     "\"annotations\":{\"org.opencontainers.image.ref.name\":\"a\"}",
                     "") "," ITEM("\"annotations\":{\"org.opencontainers.image.ref.name\":\"b\"}",
                                  "") "]}",
                 NULL, &d) == -1);
    CHECK_STR(err.msg, "there is no image for linux/amd64; there are: a, b");
}

static int parse_manifest(const char *text)
{
    static struct oci_manifest manifest;

    return oci_manifest_parse(text, strlen(text), &manifest, &err);
}

#define CONFIG "\"config\":" ITEM("\"a\":1", "")

static void manifests_that_cannot_be_used_are_refused(void)
{
    CHECK(parse_manifest("{" CONFIG ",\"layers\":[" ITEM("\"a\":1", "") "]}") == 0);
    CHECK(parse_manifest("{" CONFIG ",\"layers\":[" ITEM(
              "\"mediaType\":\"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip\"",
              "") "]}") == -1);
    CHECK(err.kind == ERR_UNSUPPORTED);
    CHECK(parse_manifest("{" CONFIG "}") == -1);
    CHECK(parse_manifest("{\"layers\":[]}") == -1);
    CHECK(parse_manifest("{" CONFIG ",\"layers\":[{\"digest\":\"sha512:00\",\"size\":1}]}") == -1);
    CHECK(parse_manifest("{" CONFIG ",\"layers\":[{\"digest\":\"" SHA "\",\"size\":-1}]}") == -1);
    CHECK(parse_manifest("{" CONFIG ",\"layers\":[{\"digest\":\"" SHA
                         "\",\"size\":99999999999}]}") == -1);
    CHECK(err.kind == ERR_TOO_BIG);
    CHECK(parse_manifest("[]") == -1);
    CHECK(oci_kind_of("{\"schemaVersion\":1}", 19, &err) == -1 && err.kind == ERR_UNSUPPORTED);
}

static void more_layers_than_allowed_are_refused(void)
{
    auto_free char *text = malloc(32768);
    size_t len = (size_t) sprintf(text, "{" CONFIG ",\"layers\":[");

    for (unsigned i = 0; i <= OCI_LAYERS_MAX; i++)
        len += (size_t) sprintf(text + len, "%s" ITEM("\"a\":1", ""), i ? "," : "");
    (void) strcpy(text + len, "]}");
    CHECK(parse_manifest(text) == -1 && err.kind == ERR_TOO_BIG);
}

static void a_config_gives_what_a_template_needs(void)
{
    static struct oci_config c;
    static const char text[] =
        "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"User\":\"node\",\"WorkingDir\":"
        "\"/app\",\"Env\":[\"A=b\",\"bad\",\"N=a\\nb\"],"
        "\"Entrypoint\":[\"/e\"],\"Cmd\":null},\"rootfs\":{\"diff_ids\":[\"" SHA "\"]}}";

    CHECK(oci_config_parse(text, sizeof text - 1, &c, &err) == 0);
    CHECK(oci_config_check(&c, &oci_platform_here, &err) == 0);
    CHECK_STR(c.user, "node");
    CHECK_STR(c.workdir, "/app");
    CHECK_INT(c.env.count, 1);
    CHECK_INT(c.env_dropped, 2);
    CHECK_STR(oci_word_next(&c.entrypoint, NULL), "/e");
    CHECK_INT(c.cmd.count, 0);
    CHECK_STR(c.diff[0], HEX);
}

static void too_many_variables_are_refused(void)
{
    static struct oci_config c;
    auto_free char *text = malloc(32768);
    size_t len = (size_t) sprintf(text, "{\"config\":{\"Env\":[");

    for (unsigned i = 0; i <= OCI_ENV_MAX; i++)
        len += (size_t) sprintf(text + len, "%s\"A%u=b\"", i ? "," : "", i);
    (void) strcpy(text + len, "]},\"rootfs\":{\"diff_ids\":[]}}");
    CHECK(oci_config_parse(text, strlen(text), &c, &err) == -1 && err.kind == ERR_TOO_BIG);
}

static void an_archive_of_several_images_needs_a_tag(void)
{
    static const char text[] =
        "[{\"Config\":\"a.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"x/layer.tar\"]},"
        "{\"Config\":\"b.json\",\"RepoTags\":null,\"Layers\":[]}]";
    static struct oci_saved saved;

    CHECK(oci_saved_parse(text, sizeof text - 1, NULL, &saved, &err) == -1);
    CHECK_STR(err.msg, "--tag has to say which image; the archive has: a:1, untagged");
    CHECK(oci_saved_parse(text, sizeof text - 1, "a:1", &saved, &err) == 0);
    CHECK_STR(saved.config, "a.json");
    CHECK_STR(saved.layers[0], "x/layer.tar");
}

CHECK_MAIN(T(names_are_read_as_docker_reads_them), T(names_that_are_none_are_refused),
           T(templates_are_named_after_images), T(an_index_gives_the_image_of_this_platform),
           T(manifests_that_cannot_be_used_are_refused), T(more_layers_than_allowed_are_refused),
           T(a_config_gives_what_a_template_needs), T(too_many_variables_are_refused),
           T(an_archive_of_several_images_needs_a_tag))
