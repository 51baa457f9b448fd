/* Shell text, as hostile as it gets. Beyond not crashing: an analysis ends soon, positions lie in the
 * command, every violation names a rule, and the verdict follows from the violations. The first byte
 * picks the policy and what the rest is taken for. */
#include "policy/policy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_MAX 5 /* of CPU, with sanitizers; the analyser's own bound is one */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static const struct policy *policies(unsigned which)
{
    static struct policy made[3];
    static int done;
    struct err err = { 0 };

    for (unsigned i = 0; !done && i < 3; i++) {
        policy_init(&made[i]);
        must(policy_preset(&made[i], policy_preset_name(i), &err) == 0);
        if (i == 0) {
            must(policy_add(&made[i], POLICY_COMMAND_BLACKLIST, "(a+)+$", &err) == 0);
            must(policy_add(&made[i], POLICY_COMMAND_WHITELIST, "[a-z]+", &err) == 0);
        }
        must(policy_compile(&made[i], &err) == 0);
    }
    done = 1;
    return &made[which % 3];
}

static void check(const struct policy_report *report, size_t len)
{
    enum policy_risk highest = POLICY_RISK_NONE;
    int denied = 0;

    for (size_t i = 0; i < report->violation_count; i++) {
        const struct policy_violation *it = &report->violations[i];

        must(policy_rule_find(it->rule) != RULE_NONE && it->command && it->detail);
        must(it->offset <= len && it->length <= len - it->offset);
        if (it->risk > highest)
            highest = it->risk;
        denied |= it->denied;
    }
    must(report->dropped || report->risk == highest);
    must(report->dropped || report->allowed == !denied);
    must(report->complete == (report->reason[0] == '\0'));
    must(report->steps <= report->steps_most && report->steps_most <= 6u << 20);
    must(report->steps_most <=
         (256u << 10) + len * (32 + 4 * 2)); /* the policies here have two patterns at most */
    /* Work that is not counted: a step is 45 ns at most, several times that with sanitizers. */
    must(report->cpu_us < 50000 + (uint64_t) report->steps * 2);
    for (size_t i = 0; i < report->program_count; i++)
        must(report->programs[i] != NULL);
    for (size_t i = 0; i < report->path_count; i++)
        must(report->paths[i].path[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const languages[] = { "python", "javascript", "perl", "bash" };
    static struct policy_report report;
    unsigned pick = size ? data[0] : 0;
    const struct policy *policy = policies(pick);
    clock_t start = clock();
    char *text;

    if (size == 0)
        return 0;
    text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if ((pick & 0xc0) == 0xc0)
        policy_analyze_path(policy, text, pick & 4 ? POLICY_WRITE : POLICY_READ, &report);
    else if ((pick & 0xc0) == 0x80)
        policy_analyze_code(policy, languages[pick >> 2 & 3], text, &report);
    else
        policy_analyze(policy, text, &report);
    check(&report, strlen(text));
    must(clock() - start < SECONDS_MAX * CLOCKS_PER_SEC);
    policy_report_done(&report);
    free(text);
    return 0;
}
