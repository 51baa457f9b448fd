#include "api/app.h"

#include "base/own.h"

#include <sys/socket.h>

/* A keeper that was started anew has closed the links to its predecessor. */
static bool is_alive(const struct link *link)
{
    char byte;

    return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

const struct config *app_config(struct app *app)
{
    return atomic_load(&app->config);
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
    (void) pthread_mutex_unlock(&app->lock);
    if (found || link_open(ret, app_config(app)->state, err) == 0)
        return 0;
    if (err->kind == ERR_UNAVAILABLE) /* the path is not for clients */
        return err_set(err, ERR_UNAVAILABLE,
                       "the keeper is down or being restarted; try again in a moment");
    return -1;
}

void app_link_give(struct app *app, struct link *link, bool healthy)
{
    (void) pthread_mutex_lock(&app->lock);
    if (healthy && app->link_count < APP_LINKS_MAX) {
        app->links[app->link_count++] = *link;
        link->fd = -1;
    }
    (void) pthread_mutex_unlock(&app->lock);
    link_close(link);
}
