#include "base/json.h"
#include "base/own.h"
#include "cli/common.h"
#include "cli/doctor/doctor_checks.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct doctor_values {
    bool json;
    bool all;
};

static const struct option doctor_options[] = {
    /* clang-format off */
    { 0,   "json", OPTION_FLAG, offsetof(struct doctor_values, json), NULL, COMPLETE_NONE, "as JSON" },
    { 'a', "all",  OPTION_FLAG, offsetof(struct doctor_values, all),  NULL, COMPLETE_NONE,
      "say of everything what it is for, not only of what is wrong" },
    /* clang-format on */
};

const struct verb doctor_verb = {
    .name = "doctor",
    .synopsis = "[--json] [--all]",
    .summary = "what this host offers and lacks, and how to fix it",
    .details = "Ends with 0 when sandboxes can run here, with 78 when they cannot.\n"
               "  ok    as it should be\n"
               "  note  good to know; nothing is weaker for it\n"
               "  warn  sandboxes run, but a layer of their isolation is weaker than it could be\n"
               "  fail  sandboxes cannot run",
    .options = doctor_options,
    .option_count = ARRAY_LEN(doctor_options),
    .run = verb_doctor,
};

static const char *const colours[] = {
    [DOCTOR_OK] = "\033[32m",
    [DOCTOR_NOTE] = "\033[36m",
    [DOCTOR_WARN] = "\033[33m",
    [DOCTOR_FAIL] = "\033[1;31m",
};

static void print_text(const struct doctor_finding *findings, bool all)
{
    bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const char *group = "";
    char verdict[256], value[400];

    for (size_t i = 0; i < doctor_check_count; i++) {
        const struct doctor_check *check = &doctor_checks[i];
        const struct doctor_finding *found = &findings[i];
        const char *fix = found->fix[0] ? found->fix : check->fix;

        if (strcmp(group, check->group) != 0)
            (void) printf("%s%s%s%s\n", i ? "\n" : "", colour ? "\033[1m" : "", check->group,
                          colour ? "\033[0m" : "");
        group = check->group;
        (void) printf("  %s%-4s%s  %-32s  %s\n", colour ? colours[found->status] : "",
                      doctor_status_name(found->status), colour ? "\033[0m" : "", check->title,
                      report_text(value, sizeof value, found->value));
        if (all || found->status != DOCTOR_OK)
            (void) printf("          %s\n", check->meaning);
        if (fix && found->status != DOCTOR_OK)
            (void) printf("          fix: %s\n", fix);
    }
    doctor_verdict(findings, verdict, sizeof verdict);
    (void) printf("\n%s\n", verdict);
}

static void print_json(const struct doctor_finding *findings)
{
    char verdict[256];
    struct json_out json;

    doctor_verdict(findings, verdict, sizeof verdict);
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "version", COVE_VERSION);
    json_out_bool(&json, "can_run", doctor_can_run(findings));
    json_out_text(&json, "isolation", verdict);
    json_out_array(&json, "checks");
    for (size_t i = 0; i < doctor_check_count; i++) {
        const struct doctor_check *check = &doctor_checks[i];
        bool ok = findings[i].status == DOCTOR_OK;

        json_out_object(&json, NULL);
        json_out_text(&json, "id", check->id);
        json_out_text(&json, "group", check->group);
        json_out_text(&json, "title", check->title);
        json_out_text(&json, "status", doctor_status_name(findings[i].status));
        json_out_text(&json, "value", findings[i].value);
        json_out_text(&json, "meaning", check->meaning);
        json_out_text(&json, "fix", ok ? NULL : findings[i].fix[0] ? findings[i].fix : check->fix);
        json_out_end(&json);
    }
    json_out_end(&json);
    json_out_end(&json);
    (void) json_out_finish(&json);
}

int verb_doctor(int argc, char **argv)
{
    struct doctor_values values = { 0 };
    auto_free struct doctor_finding *findings = calloc(doctor_check_count, sizeof *findings);
    struct doctor_host host = { .root_fd = -1, .probes = &doctor_probes };
    auto_close int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err err = { 0 };
    char **operands;
    int count, code;

    code = common_parse(&doctor_verb, argc, argv, &values, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        err_set(&err, ERR_USAGE, "doctor: unknown argument '%.60s' (see 'cove help doctor')",
                operands[0]);
    else if (root_fd < 0 || !findings)
        err_sys(&err, errno, "open /");
    if (err.kind != ERR_NONE)
        return report_error(&err);

    host.root_fd = root_fd;
    host.state = report_state();
    for (size_t i = 0; i < doctor_check_count; i++)
        doctor_checks[i].run(&host, &doctor_checks[i], &findings[i]);
    if (values.json)
        print_json(findings);
    else
        print_text(findings, values.all);
    return report_end(doctor_can_run(findings) ? 0 : err_kind_info(ERR_UNSUPPORTED)->exit_code);
}
