/* template_image.h - 'cove template import' and 'cove template pull'.
 *
 * Callers: the template verb. */
#ifndef COVE_CLI_TEMPLATE_IMAGE_H
#define COVE_CLI_TEMPLATE_IMAGE_H

#include "cli/options.h"
#include "cli/template/template_maker.h"
#include "template/image_import.h"

#include <stdbool.h>
#include <stdint.h>

struct image_values {
    const char *name, *tag, *config, *proxy, *mirror, *tenant;
    uint64_t timeout_ms, max_bytes;
    bool squash_ids, plain_http, inner;
};

/* clang-format off */
#define IMAGE_OPTIONS(at)                                                                          \
    { 0, "name", OPTION_TEXT, (at) + offsetof(struct image_values, name), "NAME", COMPLETE_NONE,   \
      "the template's name; else the image's" },                                                   \
    { 0, "tenant", OPTION_TEXT, (at) + offsetof(struct image_values, tenant), "NAME",              \
      COMPLETE_NONE, "for this tenant alone, by the server; else, as root, for all tenants" },     \
    { 0, "squash-ids", OPTION_FLAG, (at) + offsetof(struct image_values, squash_ids), NULL,        \
      COMPLETE_NONE, "files of owners above 65535 belong to 65534" }
#define IMAGE_TAG_OPTION(at)                                                                       \
    { 0, "tag", OPTION_TEXT, (at) + offsetof(struct image_values, tag), "TAG", COMPLETE_NONE,      \
      "which image, if there are several" }
#define IMAGE_PULL_OPTIONS(at)                                                                     \
    { 0, "config", OPTION_TEXT, (at) + offsetof(struct image_values, config), "FILE",              \
      COMPLETE_FILE, "credentials; else ~/.docker/config.json" },                                  \
    { 0, "proxy", OPTION_TEXT, (at) + offsetof(struct image_values, proxy), "HOST:PORT",           \
      COMPLETE_NONE, "connect through this HTTP proxy; else HTTPS_PROXY, or registry_proxy" },     \
    { 0, "mirror", OPTION_TEXT, (at) + offsetof(struct image_values, mirror), "URL",               \
      COMPLETE_NONE, "ask this registry first; else the one of registry_mirrors" },                \
    { 0, "max-bytes", OPTION_SIZE, (at) + offsetof(struct image_values, max_bytes), "SIZE",        \
      COMPLETE_NONE, "refuse an image with larger packed layers together (20G)", true },           \
    { 0, "timeout", OPTION_DURATION, (at) + offsetof(struct image_values, timeout_ms), "SPAN",     \
      COMPLETE_NONE, "how long the registry, or a credential helper, may say nothing (30s)", true },\
    { 0, "plain-http", OPTION_FLAG, (at) + offsetof(struct image_values, plain_http), NULL,        \
      COMPLETE_NONE, "without TLS; of a registry on this host it is so anyway" },                  \
    { 0, "allow-inner", OPTION_FLAG, (at) + offsetof(struct image_values, inner), NULL,            \
      COMPLETE_NONE, "the registry may lead to other hosts with addresses that are not public" }
/* clang-format on */

/* Root on this host makes templates for all tenants; everybody else, and for a tenant, a server does. */
bool template_image_is_servers(const struct image_values *values);
/* Common to both: with spec->name, spec->from and the source set. `maker` is the caller's to fill in for. */
int template_image_make(struct image_spec *spec, struct maker *maker, bool as_json,
                        struct err *err);

int template_image_import(const char *path, const struct image_values *values, bool as_json);
int template_image_pull(const char *image, const struct image_values *values, bool as_json);

#endif
