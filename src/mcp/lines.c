#include "mcp/lines.h"

#include <stdlib.h>
#include <string.h>

static int keep(struct lines *lines, const char *data, size_t len, struct err *err)
{
    if (len > LINES_MOST - lines->have)
        return err_set(err, ERR_TOO_BIG, "a line is longer than %u bytes", LINES_MOST);
    if (lines->have + len > lines->room) {
        size_t room = 2 * (lines->have + len);
        char *more = realloc(lines->text, room);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for a line");
        lines->text = more;
        lines->room = room;
    }
    if (len > 0)
        memcpy(lines->text + lines->have, data, len);
    lines->have += len;
    return 0;
}

static int give(const char *text, size_t len, lines_fn *each, void *context, struct err *err)
{
    return each(context, text, len > 0 && text[len - 1] == '\r' ? len - 1 : len, err);
}

int lines_feed(struct lines *lines, const char *data, size_t len, lines_fn *each, void *context,
               struct err *err)
{
    const char *end;
    int r = 0;

    while (r == 0 && len > 0 && (end = memchr(data, '\n', len))) {
        size_t n = (size_t) (end - data);

        if (lines->have == 0) {
            r = n > LINES_MOST ? keep(lines, data, n, err) : give(data, n, each, context, err);
        } else {
            r = keep(lines, data, n, err);
            if (r == 0)
                r = give(lines->text, lines->have, each, context, err);
            lines->have = 0;
        }
        data += n + 1;
        len -= n + 1;
    }
    return r < 0 ? -1 : keep(lines, data, len, err);
}

int lines_end(struct lines *lines, lines_fn *each, void *context, struct err *err)
{
    size_t len = lines->have;

    lines->have = 0;
    return len > 0 ? give(lines->text, len, each, context, err) : 0;
}

void lines_done(struct lines *lines)
{
    free(lines->text);
    *lines = (struct lines){ .text = NULL };
}

/* ---- events ---- */

struct feeding {
    struct events *events;
    lines_fn *each;
    void *context;
};

static int take_line(void *context, const char *text, size_t len, struct err *err)
{
    struct feeding *f = context;
    struct events *e = f->events;
    int r = 0;

    if (len == 0) {
        if (e->begun)
            r = f->each(f->context, e->data.text ? e->data.text : "", e->data.have, err);
        e->data.have = 0;
        e->begun = false;
        return r;
    }
    if (len < 5 || memcmp(text, "data:", 5) != 0)
        return 0;
    text += 5;
    len -= 5;
    if (len > 0 && text[0] == ' ') {
        text++;
        len--;
    }
    if (e->begun)
        r = keep(&e->data, "\n", 1, err);
    e->begun = true;
    return r < 0 ? -1 : keep(&e->data, text, len, err);
}

int events_feed(struct events *events, const char *bytes, size_t len, lines_fn *each, void *context,
                struct err *err)
{
    struct feeding feeding = { events, each, context };

    return lines_feed(&events->lines, bytes, len, take_line, &feeding, err);
}

void events_done(struct events *events)
{
    lines_done(&events->lines);
    lines_done(&events->data);
}
