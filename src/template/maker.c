#include "template/maker.h"

#include <stdarg.h>
#include <stdio.h>

void template_note(const struct template_maker *maker, const char *fmt, ...)
{
    char text[512];
    va_list args;

    if (!maker->note)
        return;
    va_start(args, fmt);
    (void) vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    maker->note(maker->context, text);
}

void template_step(const struct template_maker *maker, unsigned percent, const char *step,
                   const char *detail)
{
    if (maker->step)
        maker->step(maker->context, percent, step, detail);
}

void template_changed(const struct template_maker *maker, const char *name)
{
    if (maker->changed)
        maker->changed(maker->context, name);
}
