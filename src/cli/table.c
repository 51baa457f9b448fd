#include "cli/table.h"

#include "base/own.h"
#include "cli/report.h"

#include <stdarg.h>
#include <string.h>

/* Code points: good enough for columns of names and numbers. */
static size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char) *text & 0xc0) != 0x80;
    return width;
}

void table_init(struct table *table, size_t columns, const char *const *headings)
{
    *table = (struct table){ .columns = columns };
    for (size_t i = 0; i < columns; i++)
        table_cell(table, "%s", headings[i]);
}

void table_cell(struct table *table, const char *fmt, ...)
{
    auto_free char *raw = NULL;
    va_list args;
    char *text = NULL;

    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 64;
        char **cells = realloc(table->cells, room * sizeof *cells);

        if (!cells) {
            table->failed = 1;
            return;
        }
        table->cells = cells;
        table->room = room;
    }
    va_start(args, fmt);
    if (vasprintf(&raw, fmt, args) < 0)
        raw = NULL;
    va_end(args);
    text = raw ? report_safe(raw) : NULL;
    if (!text) {
        table->failed = 1;
        return;
    }
    table->cells[table->count++] = text;
}

static const char *cell_text(const struct table *table, size_t i)
{
    const char *text = table->cells[i];

    return i < table->columns && text[0] == '>' ? text + 1 : text;
}

static void print_row(const struct table *table, size_t row, const size_t *widths, FILE *out)
{
    for (size_t c = 0; c < table->columns; c++) {
        const char *text = cell_text(table, row * table->columns + c);
        size_t pad = widths[c] - text_width(text);
        int right = table->cells[c][0] == '>';

        if (right)
            (void) fprintf(out, "%*s%s", (int) pad, "", text);
        else if (c + 1 < table->columns)
            (void) fprintf(out, "%s%*s", text, (int) pad, "");
        else
            (void) fputs(text, out);
        (void) fputs(c + 1 < table->columns ? "  " : "\n", out);
    }
}

int table_print(const struct table *table, FILE *out)
{
    size_t rows = table->columns ? table->count / table->columns : 0;
    auto_free size_t *widths = calloc(table->columns + 1, sizeof *widths);

    if (!widths)
        return -1;
    for (size_t i = 0; i < rows * table->columns; i++) {
        size_t width = text_width(cell_text(table, i));

        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
    for (size_t row = 0; row < rows; row++)
        print_row(table, row, widths, out);
    return table->failed ? -1 : 0;
}

void table_done(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){ 0 };
}
