/* check.h - unit tests: one function per behaviour, named as a sentence.
 *
 * Output is one line per test, which tests/run counts:
 *   ok - a sentence        not ok - a sentence: file:line: what        skip - a sentence: why */
#ifndef COVE_TESTS_CHECK_H
#define COVE_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_test {
    const char *name;
    void (*run)(void);
};

static char check_why[512];
static char check_skip[256];
static int check_failures;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond) && !check_why[0])                                                              \
            (void) snprintf(check_why, sizeof check_why, "%s:%d: %s", __FILE__, __LINE__, #cond);  \
    } while (0)

#define CHECK_STR(got, want)                                                                       \
    do {                                                                                           \
        const char *got_ = (got), *want_ = (want);                                                 \
        if (strcmp(got_, want_) != 0 && !check_why[0])                                             \
            (void) snprintf(check_why, sizeof check_why, "%s:%d: \"%s\", not \"%s\"", __FILE__,    \
                            __LINE__, got_, want_);                                                \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long got_ = (long long) (got), want_ = (long long) (want);                            \
        if (got_ != want_ && !check_why[0])                                                        \
            (void) snprintf(check_why, sizeof check_why, "%s:%d: %s is %lld, not %lld", __FILE__,  \
                            __LINE__, #got, got_, want_);                                          \
    } while (0)

#define SKIP(...) ((void) snprintf(check_skip, sizeof check_skip, __VA_ARGS__))

static inline int check_run(const struct check_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[256];

        check_why[0] = check_skip[0] = '\0';
        (void) snprintf(name, sizeof name, "%s", tests[i].name);
        for (char *c = name; *c; c++)
            if (*c == '_')
                *c = ' ';
        tests[i].run();
        if (check_why[0])
            printf("not ok - %s: %s\n", name, check_why);
        else if (check_skip[0])
            printf("skip - %s: %s\n", name, check_skip);
        else
            printf("ok - %s\n", name);
        (void) fflush(stdout);
        check_failures += check_why[0] != '\0';
    }
    return check_failures ? 1 : 0;
}

#define T(fn)                                                                                      \
    {                                                                                              \
#fn, fn                                                                                    \
    }
#define CHECK_MAIN(...)                                                                            \
    int main(void)                                                                                 \
    {                                                                                              \
        static const struct check_test tests[] = { __VA_ARGS__ };                                  \
        return check_run(tests, sizeof tests / sizeof tests[0]);                                   \
    }

#endif
