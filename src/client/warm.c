#include "client/warm.h"

#include "client/exec.h"
#include "client/image.h"

#include <string.h>

static bool has_volumes(const struct sandbox_spec *spec)
{
    static const struct volume_use none[VOLUMES_MAX];

    return memcmp(spec->volumes, none, sizeof none) != 0;
}

/* The image's own word: it was checked by the keeper, and cannot be of another size than it says. */
static bool fits(const struct sandbox_spec *spec, const struct keeper_image *image)
{
    return (image->flags & KEEPER_IMAGE_MEMORY) && !has_volumes(spec) &&
           !(spec->flags & KEEPER_FLAG_ROOT) == !(image->sandbox.flags & KEEPER_FLAG_ROOT) &&
           memcmp(&spec->limits, &image->sandbox.limits, sizeof spec->limits) == 0 &&
           (!spec->template || strcmp(spec->template, image->sandbox.template) == 0);
}

static int load(struct link *link, const struct sandbox_spec *spec, const char *image,
                struct keeper_sandbox *ret, struct err *err)
{
    char id[ID_LEN + 1];
    struct image_load_spec from = { .image = image,
                                    .owner = WARM_OWNER,
                                    .id = spec->id,
                                    .name = spec->name,
                                    .hostname = spec->hostname };

    if (!from.id) {
        if (sandbox_new_id(id, err) < 0)
            return -1;
        from.id = id;
    }
    return image_load(link, &from, ret, err);
}

int warm_start(struct link *link, const char *sandbox, const char *command, uint32_t *ret_proc,
               struct err *err)
{
    const struct agent_request request = { .command = command,
                                           .tag = WARM_TAG,
                                           .flags = AGENT_DETACH };
    struct exec exec = EXEC_NONE;

    if (exec_start(&exec, link, sandbox, &request, err) < 0)
        return err_wrap(err, "the template's start command");
    if (ret_proc)
        *ret_proc = exec.proc;
    exec_close(&exec);
    return 0;
}

int warm_create(struct link *link, const struct sandbox_spec *spec, const struct warm_source *warm,
                struct keeper_sandbox *ret, bool *ret_loaded, struct err *ret_why, struct err *err)
{
    struct keeper_image image;

    *ret_why = (struct err){ .kind = ERR_NONE };
    *ret_loaded = false;
    if (image_get(link, warm->image, &image, ret_why) == 0 && fits(spec, &image) &&
        load(link, spec, warm->image, ret, ret_why) == 0) {
        *ret_loaded = true;
        return 0;
    }
    if (sandbox_create(link, spec, ret, err) < 0)
        return -1;
    if (!warm->start[0] || warm_start(link, ret->id, warm->start, NULL, err) == 0)
        return 0;
    (void) sandbox_destroy(link, ret->id, &(struct err){ .kind = ERR_NONE });
    return -1;
}
