#include "server/app/app.h"

#include "base/own.h"
#include "client/sandbox.h"

#include <string.h>
#include <sys/socket.h>

/* A keeper that was started again has closed the links to its predecessor. */
static bool is_alive(const struct link *link)
{
    char byte;

    return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

const struct config *app_config(struct app *app)
{
    return atomic_load(&app->config);
}

/* Lock held. false: it is too late. */
static bool note_taken(struct app *app, struct link *link)
{
    if (app->cut) {
        link_close(link);
        return false;
    }
    link->patience_ms = LINK_PATIENCE_MS; /* its user before may have had less */
    if (link->fd < APP_TAKEN_MAX)
        app->taken[link->fd / 64] |= 1ull << link->fd % 64;
    return true;
}

static int open_another(struct app *app, struct link *ret, struct err *err)
{
    bool noted;

    if (link_open(ret, app_config(app)->state, err) < 0) {
        if (err->kind == ERR_UNAVAILABLE) /* the path is not for clients */
            err_set(err, ERR_UNAVAILABLE,
                    "the keeper is down or being restarted; try again in a moment");
        return -1;
    }
    (void) pthread_mutex_lock(&app->lock);
    noted = note_taken(app, ret);
    (void) pthread_mutex_unlock(&app->lock);
    return noted ? 0 : err_set(err, ERR_UNAVAILABLE, "the server ends");
}

/* Links are kept for reuse: a connection to the keeper costs a round trip of its own. */
int app_link_take(struct app *app, struct link *ret, struct err *err)
{
    bool found = false;

    (void) pthread_mutex_lock(&app->lock);
    while (app->link_count > 0 && !found) {
        *ret = app->links[--app->link_count];
        found = is_alive(ret);
        if (!found)
            link_close(ret);
    }
    found = found && note_taken(app, ret);
    (void) pthread_mutex_unlock(&app->lock);
    return found ? 0 : open_another(app, ret, err);
}

void app_link_give(struct app *app, struct link *link, bool healthy)
{
    (void) pthread_mutex_lock(&app->lock);
    /* One that broke is closed, and its number may be another's by now: its bit stays, which does no harm at the end. */
    if (link->fd >= 0 && link->fd < APP_TAKEN_MAX)
        app->taken[link->fd / 64] &= ~(1ull << link->fd % 64);
    if (healthy && link->fd >= 0 && !app->cut && app->link_count < APP_LINKS_MAX) {
        app->links[app->link_count++] = *link;
        link->fd = -1;
    }
    (void) pthread_mutex_unlock(&app->lock);
    link_close(link);
}

int app_default_template(struct app *app, bool fresh, char ret[KEEPER_NAME_MAX], struct err *err)
{
    struct keeper_hello hello;
    struct link link;
    int r;

    (void) pthread_mutex_lock(&app->lock);
    memcpy(ret, app->default_template, KEEPER_NAME_MAX);
    (void) pthread_mutex_unlock(&app->lock);
    if (ret[0] && !fresh)
        return 0;
    if (app_link_take(app, &link, err) < 0)
        return -1;
    r = keeper_hello(&link, &hello, err);
    app_link_give(app, &link, r == 0);
    if (r < 0)
        return -1;
    memcpy(ret, hello.default_template, KEEPER_NAME_MAX);
    (void) pthread_mutex_lock(&app->lock);
    memcpy(app->default_template, ret, KEEPER_NAME_MAX);
    (void) pthread_mutex_unlock(&app->lock);
    return 0;
}

bool app_keeper_up(struct app *app, struct keeper_hello *ret)
{
    struct link link;
    struct err err;
    bool up = app_link_take(app, &link, &err) == 0;

    if (up) {
        up = keeper_hello(&link, ret, &err) == 0;
        app_link_give(app, &link, up);
    }
    return up;
}

void app_cut(struct app *app)
{
    (void) pthread_mutex_lock(&app->lock);
    app->cut = true;
    for (int fd = 0; fd < APP_TAKEN_MAX; fd++)
        if (app->taken[fd / 64] & 1ull << fd % 64)
            (void) shutdown(fd, SHUT_RDWR);
    (void) pthread_mutex_unlock(&app->lock);
}
