#include "http/media.h"

#include "base/own.h"

static const struct {
    const char *extension, *type;
} types[] = {
    /* clang-format off */
    { "txt",   "text/plain; charset=utf-8" },
    { "log",   "text/plain; charset=utf-8" },
    { "md",    "text/markdown; charset=utf-8" },
    { "html",  "text/html; charset=utf-8" },
    { "htm",   "text/html; charset=utf-8" },
    { "css",   "text/css; charset=utf-8" },
    { "csv",   "text/csv; charset=utf-8" },
    { "js",    "text/javascript; charset=utf-8" },
    { "mjs",   "text/javascript; charset=utf-8" },
    { "py",    "text/x-python; charset=utf-8" },
    { "c",     "text/x-c; charset=utf-8" },
    { "h",     "text/x-c; charset=utf-8" },
    { "sh",    "text/x-shellscript; charset=utf-8" },
    { "json",  "application/json" },
    { "ndjson", "application/x-ndjson" },
    { "yaml",  "application/yaml" },
    { "yml",   "application/yaml" },
    { "xml",   "application/xml" },
    { "toml",  "application/toml" },
    { "pdf",   "application/pdf" },
    { "wasm",  "application/wasm" },
    { "ipynb", "application/x-ipynb+json" },
    { "zip",   "application/zip" },
    { "tar",   "application/x-tar" },
    { "gz",    "application/gzip" },
    { "tgz",   "application/gzip" },
    { "xz",    "application/x-xz" },
    { "zst",   "application/zstd" },
    { "sqlite", "application/vnd.sqlite3" },
    { "xlsx",  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { "docx",  "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { "pptx",  "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
    { "png",   "image/png" },
    { "jpg",   "image/jpeg" },
    { "jpeg",  "image/jpeg" },
    { "gif",   "image/gif" },
    { "webp",  "image/webp" },
    { "svg",   "image/svg+xml" },
    { "ico",   "image/x-icon" },
    { "mp3",   "audio/mpeg" },
    { "wav",   "audio/wav" },
    { "mp4",   "video/mp4" },
    { "webm",  "video/webm" },
    { "woff2", "font/woff2" },
    /* clang-format on */
};

const char *media_type(struct slice filename)
{
    struct slice extension = { 0 };

    for (size_t i = filename.len; i > 0 && filename.at[i - 1] != '/'; i--)
        if (filename.at[i - 1] == '.') {
            extension = (struct slice){ filename.at + i, filename.len - i };
            break;
        }
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (slice_is_nocase(extension, types[i].extension))
            return types[i].type;
    return "application/octet-stream";
}

const char *media_sniff(const void *data, size_t len)
{
    static const struct {
        const char *begins;
        size_t len;
        const char *type;
    } known[] = {
        /* clang-format off */
        { "\x89PNG\r\n\x1a\n", 8, "image/png" },
        { "\xff\xd8\xff",       3, "image/jpeg" },
        { "GIF8",              4, "image/gif" },
        { "%PDF-",             5, "application/pdf" },
        { "PK\x03\x04",        4, "application/zip" },
        { "\x1f\x8b\x08",       3, "application/gzip" },
        /* clang-format on */
    };
    const unsigned char *bytes = data;

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (len >= known[i].len && memcmp(data, known[i].begins, known[i].len) == 0)
            return known[i].type;
    for (size_t i = 0; i < len && i < 512; i++)
        if (bytes[i] < ' ' && !strchr("\t\n\f\r\x1b", bytes[i] ? bytes[i] : 1))
            return "application/octet-stream";
    return "text/plain; charset=utf-8";
}
