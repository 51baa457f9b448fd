#include "oci/reference.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static int bad(const char *text, const char *why, struct err *err)
{
    return err_set(err, ERR_INVALID, "'%.100s' is not the name of an image: %s", text, why);
}

static bool host_ok(const char *host)
{
    const char *colon = strrchr(host, ':');
    size_t len = colon ? (size_t) (colon - host) : strlen(host);

    if (len == 0 || strspn(host, LOWER UPPER DIGIT ".-") < len || host[0] == '.' || host[0] == '-')
        return false;
    return !colon ||
           (colon[1] && strspn(colon + 1, DIGIT) == strlen(colon + 1) && strlen(colon + 1) <= 5);
}

/* Parts of [a-z0-9], with single separators between. */
static bool path_ok(const char *path)
{
    bool after = false; /* a letter or digit was last */

    for (const char *c = path; *c; c++) {
        if (strchr(LOWER DIGIT, *c))
            after = true;
        else if (*c == '/' || *c == '.' || (*c == '_' && c[1] != '_')) {
            if (!after && !(*c == '_' && c > path && c[-1] == '_'))
                return false;
            after = false;
        } else if (*c == '-' || *c == '_') {
            if (!after && !(c > path && c[-1] == *c))
                return false;
            after = false;
        } else {
            return false;
        }
    }
    return after;
}

static bool tag_ok(const char *tag)
{
    return tag[0] && tag[0] != '.' && tag[0] != '-' &&
           strspn(tag, LOWER UPPER DIGIT "_.-") == strlen(tag);
}

static bool is_host(const char *text, size_t len)
{
    return memchr(text, '.', len) || memchr(text, ':', len) ||
           (len == 9 && memcmp(text, "localhost", 9) == 0);
}

static int keep(char *out, size_t size, const char *from, size_t len)
{
    if (len >= size)
        return -1;
    memcpy(out, from, len);
    out[len] = '\0';
    return 0;
}

/* Cuts the digest and the tag off its end. */
static int take_end(char *rest, struct reference *ret)
{
    char *at = strchr(rest, '@'), *colon;

    if (at) {
        if (!oci_digest_ok(at + 1))
            return -1;
        memcpy(ret->digest, at + 1, OCI_DIGEST);
        *at = '\0';
    }
    colon = strrchr(rest, ':');
    if (colon && !strchr(colon, '/')) {
        if (!tag_ok(colon + 1) || keep(ret->tag, sizeof ret->tag, colon + 1, strlen(colon + 1)) < 0)
            return -1;
        *colon = '\0';
    } else if (!at) {
        (void) strcpy(ret->tag, "latest");
    }
    return 0;
}

int reference_parse(const char *text, struct reference *ret, struct err *err)
{
    char rest[768];
    const char *path = rest, *slash;

    memset(ret, 0, sizeof *ret);
    if (keep(rest, sizeof rest, text, strlen(text)) < 0)
        return bad(text, "it is too long", err);
    slash = strchr(rest, '/');
    if (slash && is_host(rest, (size_t) (slash - rest))) {
        if (keep(ret->host, sizeof ret->host, rest, (size_t) (slash - rest)) < 0 ||
            !host_ok(ret->host))
            return bad(text, "the registry is not HOST or HOST:PORT", err);
        path = slash + 1;
    } else {
        (void) strcpy(ret->host, REFERENCE_DEFAULT);
    }
    if (take_end(rest + (path - rest), ret) < 0)
        return bad(text, "its tag or digest is invalid", err);
    if (!path_ok(path))
        return bad(text, "its path has parts of [a-z0-9], with '.', '_' or '-' between", err);
    if ((size_t) snprintf(
            ret->path, sizeof ret->path, "%s%s",
            strcmp(ret->host, REFERENCE_DEFAULT) == 0 && !strchr(path, '/') ? "library/" : "",
            path) >= sizeof ret->path)
        return bad(text, "it is too long", err);
    return 0;
}

const char *reference_wanted(const struct reference *r)
{
    return r->digest[0] ? r->digest : r->tag;
}

void reference_text(const struct reference *r, char *out, size_t size)
{
    (void) snprintf(out, size, "%s/%s%s%s%s%s", r->host, r->path, r->tag[0] ? ":" : "", r->tag,
                    r->digest[0] ? "@" : "", r->digest);
}

const char *reference_registry(const struct reference *r)
{
    return strcmp(r->host, REFERENCE_DEFAULT) == 0 ? "registry-1.docker.io" : r->host;
}

void reference_template_name(const struct reference *r, char *out, size_t size)
{
    const char *last = strrchr(r->path, '/') ? strrchr(r->path, '/') + 1 : r->path;
    bool tagged = r->tag[0] && strcmp(r->tag, "latest") != 0;

    (void) snprintf(out, size, "%s%s%s", last, tagged ? "-" : "", tagged ? r->tag : "");
    for (char *c = out; *c; c++)
        *c = (char) tolower((unsigned char) *c);
    for (size_t len = strlen(out); len > 0 && strchr("._-", out[len - 1]); len--)
        out[len - 1] = '\0';
}
