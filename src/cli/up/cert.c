#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>

#define DOMAIN_DEFAULT "cove.localhost"
#define OUT_DEFAULT    "cove-tls"

struct cert_values {
    const char *domain, *out;
    bool force;
};

#define AT(field) offsetof(struct cert_values, field)

/* clang-format off */
static const struct option dev_options[] = {
    { 0, "domain", OPTION_TEXT, AT(domain), "NAME", COMPLETE_NONE, "for this and all below it (" DOMAIN_DEFAULT ")" },
    { 0, "out",    OPTION_TEXT, AT(out),    "DIR",  COMPLETE_DIR,  "where the files go (./" OUT_DEFAULT ")" },
    { 0, "force",  OPTION_FLAG, AT(force),  NULL,   COMPLETE_NONE, "replace what is there" },
};

static int cert_dev(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "dev", .synopsis = "[OPTION…]", .summary = "make a CA and a certificate for trying TLS here",
      .details = "The CA can vouch for the domain and loopback only. Run again, it leaves what is good as it is.",
      .options = dev_options, .option_count = ARRAY_LEN(dev_options), .run = cert_dev },
};

const struct verb cert_verb = {
    .name = "cert",
    .synopsis = "dev …",
    .summary = "certificates for previews",
    .command_at = 1,
    .run = verb_cert,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

/* The server has OpenSSL in it, and this program has not: it does the work. */
static int make(const struct cert_values *values, struct err *err)
{
    char path[PATH_MAX];
    int status;
    pid_t pid;

    if (program_find("coved", path, sizeof path, err) < 0)
        return -1;
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        (void) execl(path, "coved", "make-cert", values->out, values->domain,
                     values->force ? "force" : "keep", (char *) NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) < 0)
        return err_sys(err, errno, "wait for coved");
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return err_set(err, ERR_STATE, "no certificate was made");
    return WEXITSTATUS(status);
}

static void show(const struct cert_values *values, const char *dir, bool kept)
{
    printf("%s %s: ca.pem, cert.pem and key.pem for %s, *.%s and loopback\n",
           kept ? "nothing to do in" : "made in", dir, values->domain, values->domain);
    printf("start with it:    cove up --tls-listen 127.0.0.1:8443 --tls-cert %s/cert.pem \\\n",
           dir);
    printf("                    --tls-key %s/key.pem --domain %s --public-domain %s:8443\n", dir,
           values->domain, values->domain);
    printf("trust it, curl:   curl --cacert %s/ca.pem https://PORT-ID.%s:8443/\n", dir,
           values->domain);
    printf("trust it, Node:   NODE_EXTRA_CA_CERTS=%s/ca.pem node app.mjs\n", dir);
    printf("trust it, Python: SSL_CERT_FILE=%s/ca.pem python3 app.py\n", dir);
}

static int cert_dev(int argc, char **argv)
{
    struct cert_values values = { .domain = DOMAIN_DEFAULT, .out = OUT_DEFAULT };
    char whole[PATH_MAX];
    struct err err;
    char **operands;
    int count, code, made;

    code = subverb_parse(&cert_verb, "dev", argc, argv, &values, NULL, 0, 0, &operands, &count);
    if (code >= 0)
        return code;
    made = make(&values, &err);
    if (made < 0)
        return report_error(&err);
    show(&values, realpath(values.out, whole) ? whole : values.out, made == 1);
    return 0;
}

int verb_cert(int argc, char **argv)
{
    return subverbs_run(&cert_verb, argc, argv);
}
