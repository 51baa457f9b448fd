/* dump.h - JSON as text, for answers: what jansson's JSON_COMPACT makes, in the same words, at a third of its cost.
 *
 * jansson looks for loops: each object and array is a key that is printed, put into a table and taken out again.
 * Answers are trees; what is nested deeper than DUMP_DEPTH is refused instead. Texts beyond ASCII and fractions are
 * left to jansson.
 *
 * Owns:    what did not fit into `small`, from dump_json to dump_done. */
#ifndef COVE_SERVER_SERVE_DUMP_H
#define COVE_SERVER_SERVE_DUMP_H

#include <jansson.h>
#include <stddef.h>

#define DUMP_SMALL 4096
#define DUMP_DEPTH 256

struct dump {
    size_t len, room;
    char *large; /* NULL: all of it is in small */
    char small[DUMP_SMALL];
};

/* -1: no memory, too deep, or a text that is not UTF-8. dump_done is called in either case. */
int dump_json(struct dump *dump, const json_t *json);
static inline const char *dump_text(const struct dump *dump)
{
    return dump->large ? dump->large : dump->small;
}
void dump_done(struct dump *dump);

#endif
