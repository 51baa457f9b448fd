#include "cli/progress.h"

#include "base/io.h"
#include "cli/report.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_MS 100
#define BAR_CELLS 24

void progress_init(struct progress *progress, const char *title)
{
    memset(progress, 0, sizeof *progress);
    progress->title = title;
    progress->tty = isatty(STDERR_FILENO);
    progress->started_ms = io_now_ms();
}

static unsigned terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
        return 80;
    return size.ws_col;
}

static void draw(struct progress *progress, const char *detail)
{
    char bar[BAR_CELLS + 1], text[160], line[512];
    unsigned columns = terminal_columns(), filled = progress->percent * BAR_CELLS / 100;

    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', filled);
    bar[BAR_CELLS] = '\0';
    (void) snprintf(line, sizeof line, "%s [%s] %3u%%  %s%s%s", progress->title, bar,
                    progress->percent, progress->step, detail ? ": " : "",
                    detail ? report_text(text, sizeof text, detail) : "");
    if (columns < sizeof line)
        line[columns - 1] = '\0';
    (void) fprintf(stderr, "\r\033[K%s", line);
    (void) fflush(stderr);
    progress->drawn = true;
    progress->drawn_ms = io_now_ms();
}

void progress_show(struct progress *progress, unsigned percent, const char *step,
                   const char *detail)
{
    bool new_step = strcmp(progress->step, step) != 0;
    bool new_tenth = percent / 10 > progress->percent / 10;

    if (percent > progress->percent)
        progress->percent = percent > 100 ? 100 : percent;
    if (new_step)
        (void) snprintf(progress->step, sizeof progress->step, "%s", step);
    if (progress->tty) {
        if (new_step || io_now_ms() - progress->drawn_ms >= REDRAW_MS)
            draw(progress, detail);
    } else if (new_step || new_tenth) {
        (void) fprintf(stderr, "%s: %3u%%  %s\n", progress->title, progress->percent,
                       progress->step);
    }
}

void progress_done(struct progress *progress, const char *text)
{
    if (progress->tty && progress->drawn)
        (void) fputs("\r\033[K", stderr);
    if (text)
        (void) fprintf(stderr, "%s: %s\n", progress->title, text);
    (void) fflush(stderr);
}
