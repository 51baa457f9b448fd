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
bool warm_fits(const struct sandbox_spec *spec, const struct keeper_image *image)
{
    return (image->flags & KEEPER_IMAGE_MEMORY) && !has_volumes(spec) &&
           !(spec->flags & KEEPER_FLAG_ONCE) && spec->isolation == image->sandbox.isolation &&
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
                                    .hostname = spec->hostname,
                                    .flags = spec->flags & KEEPER_LOAD_POOL };

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

/* One that was in the pool has been told that it is a copy; how late it is, it could not know. An agent that does not
 * take it will not take commands either, and say why. */
static void tell(struct link *link, const struct keeper_sandbox *taken,
                 const struct keeper_image *image)
{
    uint64_t slept_ms =
        taken->created_ms > image->saved_ms ? taken->created_ms - image->saved_ms : 0;

    (void) exec_resumed(link, taken->id, slept_ms, &(struct err){ .kind = ERR_NONE });
}

int warm_create_ahead(struct link *link, const struct sandbox_spec *spec, const char *image,
                      struct keeper_sandbox *ret, struct err *err)
{
    struct keeper_image found;

    if (image_get(link, image, &found, err) < 0)
        return -1;
    if (!warm_fits(spec, &found))
        return err_set(err, ERR_NO_IMAGE, "the image is of another size");
    return load(link, spec, image, ret, err);
}

int warm_create(struct link *link, const struct sandbox_spec *spec, const struct warm_source *warm,
                struct keeper_sandbox *ret, bool *ret_loaded, struct err *ret_why, struct err *err)
{
    struct keeper_image image;

    *ret_why = (struct err){ .kind = ERR_NONE };
    *ret_loaded = false;
    if (image_get(link, warm->image, &image, ret_why) == 0 && warm_fits(spec, &image) &&
        load(link, spec, warm->image, ret, ret_why) == 0) {
        *ret_loaded = true;
        if (ret->flags & KEEPER_FLAG_TAKE)
            tell(link, ret, &image);
        return 0;
    }
    if (sandbox_create(link, spec, ret, err) < 0)
        return -1;
    if (!warm->start[0] || warm_start(link, ret->id, warm->start, NULL, err) == 0)
        return 0;
    (void) sandbox_destroy(link, ret->id, &(struct err){ .kind = ERR_NONE });
    return -1;
}
