/* Looks for commands that cost the analyser much: `make fuzz-cost`. A hill climber over texts made of what has cost
 * something before: it keeps what takes more CPU time per byte (bytes) or per counted step (steps), and prints the best.
 * Two findings are possible: a short text that costs too much, or a loop that does not call spend().
 *
 * Usage: shell_cost bytes|steps SECONDS SIZE [SEED] */
#include "base/own.h"
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOKENS_MAX 4096
#define STEPS_LEAST                                                                                \
    2000 /* below that, the beginning and the end of an analysis are what is measured */

static const char *const tokens[] = {
    "a",
    " ",
    ";",
    "\n",
    "|",
    "&&",
    "&",
    "{a,b}",
    "{1..64}",
    "{",
    "}",
    ",",
    "$(",
    ")",
    "(",
    "`",
    "'",
    "\"",
    "$'",
    "\\",
    "${a:-",
    "$a",
    "$@",
    "*",
    "?",
    "[a-z]",
    "[",
    "~/",
    "~root",
    "<<E\n",
    "E\n",
    "<<-E ",
    "<<<",
    ">x ",
    ">>x ",
    "<x ",
    "<(",
    ">(",
    "2>&1 ",
    "$((",
    "))",
    "1+",
    "for i in 1 2 3 4 5 6 7 8;do ",
    "while true;do ",
    "done;",
    "if a;then ",
    "fi;",
    "case x in x)",
    ";;esac;",
    "f(){ ",
    "};",
    "f ",
    "a=$a$a;",
    "a=aaaaaaaaaaaaaaaa;",
    "a=(a b c d);",
    "${a[1]}",
    "${a%%*a*}",
    "${a##*a*b}",
    "${a//a/bb}",
    "${a:1:5}",
    "${a^^}",
    "${!a}",
    "${#a}",
    "b=",
    "c=1 ",
    "sudo ",
    "xargs ",
    "env a=b ",
    "nice ",
    "timeout 1 ",
    "bash -c '",
    "sh -c \"",
    "eval ",
    "source x ",
    "cat ",
    "echo ",
    "printf %s ",
    "tee x ",
    "rev",
    "tr a b",
    "sed s/a/b/",
    "base64 -d",
    "xxd -r -p",
    "openssl base64 -d ",
    "find / -exec ",
    " {} \\;",
    "rm -rf ",
    "/etc/",
    "/",
    "..",
    "../",
    "/etc/shadow ",
    "/dev/tcp/a/1 ",
    "cd ",
    "export ",
    "alias a=b;",
    "trap ",
    "read a;",
    "python3 -c ",
    "import os;os.system(",
    "node -e ",
    "perl -e ",
    "awk ",
    "curl ",
    "http://a/ ",
    "nc -e ",
    "git -c a=b ",
    "tar --checkpoint-action=exec=",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "QUJDREVGR0g=",
    "\\x41",
    "-",
    "--",
    "-c ",
    "=",
    "#",
    "!",
    "%",
    "coproc ",
    "function f ",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    ":",
    ". ",
    "0",
    "x",
    "-exec ",
    "+ ",
    "set -- ",
};

struct text {
    uint16_t at[TOKENS_MAX];
    size_t count;
};

static uint64_t seed = 88172645463325252ull;

static size_t pick(size_t most)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t) (seed % most);
}

static size_t spell(const struct text *text, char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < text->count; i++) {
        size_t n = strlen(tokens[text->at[i]]);

        if (len + n >= size)
            break;
        memcpy(out + len, tokens[text->at[i]], n);
        len += n;
    }
    out[len] = '\0';
    return len;
}

/* Copies a piece of the text behind itself, once or often. */
static void repeat(struct text *text, size_t most)
{
    size_t from = pick(text->count), len = 1 + pick(text->count - from), times = 1 + pick(16);

    for (size_t k = 0; k < times && text->count + len <= most; k++) {
        memmove(text->at + from + len, text->at + from, (text->count - from) * sizeof text->at[0]);
        text->count += len;
    }
}

static void mutate(struct text *text, size_t most)
{
    for (size_t n = 1 + pick(4); n > 0; n--) {
        size_t at = text->count ? pick(text->count) : 0;

        switch (text->count ? pick(4) : 0) {
        case 0:
            if (text->count >= most)
                break;
            memmove(text->at + at + 1, text->at + at, (text->count - at) * sizeof text->at[0]);
            text->at[at] = (uint16_t) pick(ARRAY_LEN(tokens));
            text->count++;
            break;
        case 1:
            text->at[at] = (uint16_t) pick(ARRAY_LEN(tokens));
            break;
        case 2:
            memmove(text->at + at, text->at + at + 1, (text->count - at - 1) * sizeof text->at[0]);
            text->count--;
            break;
        default:
            repeat(text, most);
        }
    }
}

static double measure(const struct policy *policy, const char *command, bool by_step,
                      struct policy_report *report)
{
    double best = 1e12;

    for (int k = 0; k < 3; k++) { /* the least of three: others run beside us */
        policy_analyze(policy, command, report);
        if ((double) report->cpu_us < best)
            best = (double) report->cpu_us;
        policy_report_done(report);
    }
    if (by_step)
        return report->steps < STEPS_LEAST ? 0 : 1000 * best / report->steps;
    return best;
}

int main(int argc, char **argv)
{
    static struct policy policy;
    static struct policy_report report;
    static struct text best, now;
    bool by_step = argc > 1 && strcmp(argv[1], "steps") == 0;
    time_t until = time(NULL) + (argc > 2 ? atol(argv[2]) : 10);
    size_t size = argc > 3 ? (size_t) atol(argv[3]) : 256, stuck = 0;
    char *command = malloc(size + 1), *worst = calloc(1, size + 1);
    double score = 0, highest = 0;
    uint32_t steps = 0;
    struct err err;

    if (!command || !worst || size > TOKENS_MAX)
        return 2;
    seed += argc > 4 ? strtoull(argv[4], NULL, 10) * 7919 : 0;
    policy_init(&policy);
    if (policy_preset(&policy, "standard", &err) < 0 || policy_compile(&policy, &err) < 0)
        return 2;
    while (time(NULL) < until) {
        double got;

        now = best;
        mutate(&now, size);
        (void) spell(&now, command, size + 1);
        got = measure(&policy, command, by_step, &report);
        if (got >= score) {
            stuck = got > score * 1.01 ? 0 : stuck + 1;
            best = now;
            score = got;
        }
        if (got > highest) {
            highest = got;
            steps = report.steps;
            memcpy(worst, command, strlen(command) + 1);
        }
        if (++stuck > 4000) { /* from anew: a hill has a top */
            best.count = 0;
            score = 0;
            stuck = 0;
        }
    }
    printf("%.1f %s, %u steps for %zu bytes: %.200s\n", highest, by_step ? "ns a step" : "us",
           steps, strlen(worst), worst);
    policy_done(&policy);
    free(command);
    free(worst);
    return 0;
}
