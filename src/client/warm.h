/* warm.h - a sandbox from a template that carries a memory image, where the image fits.
 *
 * Such a template is a template like any other, and an image of one of its sandboxes in which a command runs already
 * (cli/template/template_warm.c makes it). A caller that knows of the image gives it here with the create.
 *
 * Callers: the command line, the API's operations. */
#ifndef COVE_CLIENT_WARM_H
#define COVE_CLIENT_WARM_H

#include "client/sandbox.h"

/* Of the images of templates; no tenant has this name (store/tenant.c). */
#define WARM_OWNER "cove.templates"
/* Of the process that the start command is, in the sandbox's list. */
#define WARM_TAG "cove.start"

struct warm_source {
    const char *image;
    const char *start; /* by a shell, of the template's user; "": none */
};

/* The start command, in the background. */
int warm_start(struct link *link, const char *sandbox, const char *command, uint32_t *ret_proc,
               struct err *err);

/* For the pool (client/image.h). ERR_NO_IMAGE: no image fits `spec`. */
int warm_create_ahead(struct link *link, const struct sandbox_spec *spec, const char *image,
                      struct keeper_sandbox *ret, struct err *err);

/* Whether sandboxes like that come out of the image. */
bool warm_fits(const struct sandbox_spec *spec, const struct keeper_image *image);

/* Limits, profile and the absence of volumes say whether the image fits. What does not fit, or cannot be loaded, is
 * made as if there were no image, and the start command is run then: the same, only later. *ret_why: why an image that
 * fits was not loaded; kind ERR_NONE: it was, or none fits. *ret_loaded: of the image. */
int warm_create(struct link *link, const struct sandbox_spec *spec, const struct warm_source *warm,
                struct keeper_sandbox *ret, bool *ret_loaded, struct err *ret_why, struct err *err);

#endif
