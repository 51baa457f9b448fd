/* The battery: every row of battery.h, one line each. */
#include "check.h"
#include "policy/policy.h"

#include "battery.h"

static const char *const kinds[] = { "benign", "malicious", "obfuscated" };

/* Why a sample is not as expected; "" when it is. */
static void compare(const struct sample *it, const struct policy_report *report, char *why,
                    size_t size)
{
    bool found = !it->rule;

    for (size_t i = 0; it->rule && i < report->violation_count; i++)
        found |= strcmp(report->violations[i].rule, it->rule) == 0;
    why[0] = '\0';
    if (!it->rule && report->violation_count)
        (void) snprintf(why, size, "found %s", report->violations[0].rule);
    else if (!found)
        (void) snprintf(why, size, "%s is not found, but %s", it->rule,
                        report->violation_count ? report->violations[0].rule : "nothing");
    else if (report->risk != it->risk)
        (void) snprintf(why, size, "risk %s, not %s", policy_risk_name(report->risk),
                        policy_risk_name(it->risk));
    else if (report->allowed != it->allowed)
        (void) snprintf(why, size, "%s", report->allowed ? "allowed" : "refused");
}

int main(void)
{
    static struct policy policy;
    size_t counts[3] = { 0 };
    struct err err;
    int bad = 0;

    policy_init(&policy);
    if (policy_preset(&policy, "standard", &err) < 0 || policy_compile(&policy, &err) < 0) {
        printf("not ok - the standard policy compiles: %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < sizeof battery / sizeof battery[0]; i++) {
        static struct policy_report report;
        char shown[100], why[200];

        policy_analyze(&policy, battery[i].command, &report);
        compare(&battery[i], &report, why, sizeof why);
        (void) snprintf(shown, sizeof shown, "%s", battery[i].command);
        for (char *c = shown; *c; c++)
            if (*c == '\n')
                *c = ' ';
        printf("%s - %s: %s%s%s\n", why[0] ? "not ok" : "ok", kinds[battery[i].kind], shown,
               why[0] ? ": " : "", why);
        bad += why[0] != '\0';
        counts[battery[i].kind]++;
        policy_report_done(&report);
    }
    policy_done(&policy);
    if (counts[0] < 50 || counts[1] < 50 || counts[2] < 50) {
        printf("not ok - the battery has 50 commands of each kind: %zu, %zu, %zu\n", counts[0],
               counts[1], counts[2]);
        return 1;
    }
    printf("ok - the battery has %zu benign, %zu malicious and %zu obfuscated commands\n",
           counts[0], counts[1], counts[2]);
    return bad != 0;
}
