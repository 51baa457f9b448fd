/* What E2B has and this server does not: refused in words that say so, with the statuses that SDKs take for "not
 * there". Each is a route of its own in control.c, so that a handler can take its place. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <string.h>

static int absent(struct err *err, const char *what)
{
    return err_set(err, ERR_UNSUPPORTED, "%s are not offered by this server", what);
}

int control_build_absent(struct exchange *x, struct err *err)
{
    (void) x;
    return absent(err, "template builds over the API");
}

/* 501: the SDK shows the sentence. Who may not use the volume would learn nothing here either. */
int control_volume_content_absent(struct exchange *x, struct err *err)
{
    (void) x;
    return err_set(
        err, ERR_UNSUPPORTED,
        "this server does not offer the content of volumes over the API: "
        "mount the volume in a sandbox (volumeMounts), and use the files of that sandbox");
}

/* 403 is what E2B itself says where secrets are not switched on. */
int control_secrets_absent(struct exchange *x, struct err *err)
{
    (void) x;
    return err_set(err, ERR_DENIED, "secrets are not offered by this server");
}
