/* FROM a template that is installed on the host: which version of it that is. An image is known by its content, so that the steps on it
 * stay known when the same image is pulled again, and are run again when its name means another one. */
#include "server/build/build_own.h"

#include <inttypes.h>
#include <string.h>

/* A digest of FROM is that of the image's manifest, or what the image was pulled by, which may be an index. */
static int check_digest(const struct run *run, const struct keeper_template *about, struct err *err)
{
    const char *wanted = strchr(run->stage->from, '@');

    if (!wanted || strcmp(wanted + 1, about->digest) == 0 || strcmp(wanted + 1, about->named) == 0)
        return 0;
    if (!about->digest[0])
        return err_set(err, ERR_STATE,
                       "FROM %.100s: the digest of the template '%.60s' is not known",
                       run->stage->from, run->from);
    return err_set(err, ERR_STATE,
                   "FROM %.100s: the template '%.60s' is another image, %.80s: an administrator "
                   "pulls the one with this digest",
                   run->stage->from, run->from, about->digest);
}

int from_installed(struct run *run, char *out, size_t size, struct err *err)
{
    struct keeper_template about;

    if (ops_template_about(&run->ops, run->from, &about, err) < 0 ||
        check_digest(run, &about, err) < 0)
        return -1;
    if (about.layer[0])
        (void) snprintf(out, size, "image %s", about.layer);
    else
        (void) snprintf(out, size, "installed %s %016" PRIx64, run->from, about.build);
    return 0;
}
