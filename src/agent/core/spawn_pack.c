#include "agent/core/spawn_pack.h"

#include <stdlib.h>
#include <string.h>

/* Behind it: the directory, if there is one, the arguments, the environment; each with its NUL. */
struct packed {
    struct spawn plain; /* without pointers and descriptors */
    bool has_cwd;
    uint32_t args, env;
};

struct room {
    char *at, *end;
    bool full;
};

static void put(struct room *room, const char *text)
{
    size_t len = strlen(text) + 1;

    if (room->full || len > (size_t) (room->end - room->at)) {
        room->full = true;
        return;
    }
    memcpy(room->at, text, len);
    room->at += len;
}

static uint32_t put_all(struct room *room, char *const *texts)
{
    uint32_t count = 0;

    for (; texts[count] && !room->full; count++)
        put(room, texts[count]);
    return count;
}

size_t spawn_pack(const struct spawn *spawn, char *out, size_t size)
{
    struct packed head = { .plain = *spawn, .has_cwd = spawn->cwd != NULL };
    struct room room = { .at = out + sizeof head, .end = out + size };

    if (size < sizeof head)
        return 0;
    if (spawn->cwd)
        put(&room, spawn->cwd);
    head.args = put_all(&room, spawn->argv);
    head.env = put_all(&room, spawn->envp);
    head.plain.cwd = head.plain.texts = NULL;
    head.plain.argv = head.plain.envp = NULL;
    memset(head.plain.stdio, 0, sizeof head.plain.stdio);
    memcpy(out, &head, sizeof head);
    return room.full ? 0 : (size_t) (room.at - out);
}

static char *take(struct room *room)
{
    char *text = room->at;
    size_t left = (size_t) (room->end - text), len = strnlen(text, left);

    if (len == left) {
        room->full = true;
        return NULL;
    }
    room->at += len + 1;
    return text;
}

/* With one slot in front, as spawn.c's build_argv. */
static char **take_all(struct room *room, uint32_t count)
{
    char **list = count > (size_t) (room->end - room->at) ? NULL : calloc(count + 2u, sizeof *list);

    for (uint32_t i = 0; list && i < count; i++)
        list[i + 1] = take(room);
    return list;
}

int spawn_unpack(struct spawn *ret, char *data, size_t len)
{
    struct room room = { .at = data + sizeof(struct packed), .end = data + len };
    struct packed head;
    char **args, **env;

    *ret = (struct spawn){ .argv = NULL };
    if (len < sizeof head)
        return -1;
    memcpy(&head, data, sizeof head);
    *ret = head.plain;
    ret->cwd = head.has_cwd ? take(&room) : NULL;
    args = take_all(&room, head.args);
    env = take_all(&room, head.env);
    if (!args || !env || room.full || room.at != room.end) {
        free(args);
        free(env);
        return -1; /* *ret has nothing to free */
    }
    ret->argv = args + 1;
    memmove(env, env + 1, (head.env + 1u) * sizeof *env);
    ret->envp = env;
    return 0;
}
