/* table.h - aligned columns for people.
 *
 * Cells are copied; the widths follow from what was put in. Counts columns by code points. What a server, or a sandbox, put into a
 * cell is shown and not obeyed (report_text).
 * An allocation that fails shows as fewer rows and -1 from table_print. */
#ifndef COVE_CLI_TABLE_H
#define COVE_CLI_TABLE_H

#include <stddef.h>
#include <stdio.h>

struct table {
    size_t columns;
    char **cells;
    size_t count, room;
    int failed;
};

/* The headings are the first row. A heading that begins with '>' is aligned to the right. */
void table_init(struct table *table, size_t columns, const char *const *headings);
void table_cell(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int table_print(const struct table *table, FILE *out);
void table_done(struct table *table);

#endif
