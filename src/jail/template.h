/* template.h - opening a template by name: its root tree, or image file, and the few settings the jail needs.
 *
 * Owns:    nothing on disk; templates are made and removed by the command line.
 * Never:   follows a link, or takes a name that is not checked by name_ok(). */
#ifndef COVE_JAIL_TEMPLATE_H
#define COVE_JAIL_TEMPLATE_H

#include "base/err.h"
#include "wire/layers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATE_ENV_MAX   16384
#define TEMPLATE_ENV_COUNT 64

struct template
{
    int root_fd; /* O_PATH, of the tree; of an image: of its file, until driver/layers.h has mounted it */
    /* of an image that is several files: those below, the lowest first, as root_fd */
    size_t below_count, below_said; /* said: by the manifest */
    int below_fd[LAYERS_BELOW_MAX];
    uint64_t inode; /* of the tree or the file */
    bool image;     /* kind=image: an EROFS file */
    uint64_t build; /* another one when the template was made again: by its manifest and its tree */
    bool host_usr;  /* kind=host: the host's /usr goes over the tree's */
    /* of an image, for callers that compare: "" where the manifest says none */
    char layer[80], digest[80], named[80]; /* named: what the image's name had behind its '@' */
    char user[64];
    char workdir[256];
    size_t env_count;
    size_t env_used;
    char env[TEMPLATE_ENV_MAX]; /* K=V texts, one behind the other */
};

int template_open(struct template *t, int templates_fd, const char *name, struct err *err);
/* The same with the tree of that inode, for what was saved on it: 0 is the tree of now, as is one that still is. Trees
 * that a build has replaced stay while anything stands on them. ERR_STATE: it is not there any more. */
int template_open_tree(struct template *t, int templates_fd, const char *name, uint64_t inode,
                       struct err *err);
void template_close(struct template *t);

/* Pure: the manifest's text into settings; *ret_root is the name of the tree's directory. */
int template_parse(struct template *t, char *text, const char **ret_root, struct err *err);

bool template_exists(int templates_fd, const char *name);

#endif
