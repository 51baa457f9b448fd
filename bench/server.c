#include "server.h"

#include "base/io.h"
#include "base/own.h"
#include "caller.h"
#include "launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_LIMIT_MS 20000
#define NGINX          "/usr/sbin/nginx"

/* The tenant of loopback must not be the measured limit. */
static int lift_quotas(const struct rig *rig, struct err *err)
{
    char *const argv[] = { (char *) rig->cove,
                           (char *) "tenant",
                           (char *) "set",
                           (char *) "local",
                           (char *) "--sandboxes",
                           (char *) "0",
                           (char *) "--cpus",
                           (char *) "0",
                           (char *) "--memory",
                           (char *) "0",
                           (char *) "--disk",
                           (char *) "0",
                           (char *) "--creates-per-s",
                           (char *) "0",
                           (char *) "--requests-per-s",
                           (char *) "0",
                           (char *) "--streams",
                           (char *) "0",
                           (char *) "--state",
                           (char *) rig->state,
                           NULL };
    struct launch_result result;

    if (launch_run(argv, LAUNCH_NULL, &result) < 0)
        return err_set(err, ERR_INTERNAL, "cove tenant set: %s", result.said);
    return 0;
}

/* The port that a coved says it listens on. */
static int await_ready(struct server *server, struct err *err)
{
    static const char word[] = "ready listen=127.0.0.1:";
    uint64_t begin = io_now_ms();
    char said[4096];

    for (;;) {
        ssize_t got = pread(server->log, said, sizeof said - 1, 0);
        const char *at;

        said[got > 0 ? got : 0] = '\0';
        at = strstr(said, word);
        if (at && strchr(at, '\n')) {
            server->port = (uint16_t) strtoul(at + strlen(word), NULL, 10);
            return 0;
        }
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = -1;
            return err_set(err, ERR_UNAVAILABLE, "coved ended: %.200s", said);
        }
        if (io_now_ms() - begin > START_LIMIT_MS)
            return err_set(err, ERR_TIMEOUT, "coved is not ready: %.200s", said);
        (void) usleep(1000);
    }
}

int server_coved(struct server *server, const struct rig *rig, const char *pool, struct err *err)
{
    char program[600];
    char *const argv[] = { program,
                           (char *) "--state",
                           (char *) rig->state,
                           (char *) "--listen",
                           (char *) "127.0.0.1:0",
                           (char *) "--pool",
                           (char *) pool,
                           NULL };

    *server = SERVER_NONE;
    (void) snprintf(program, sizeof program, "%s/coved", rig->programs);
    server->log = memfd_create("coved-log", MFD_CLOEXEC);
    if (server->log < 0)
        return err_sys(err, errno, "make coved's log");
    server->pid = launch_background(argv, server->log);
    if (server->pid < 0)
        return err_sys(err, errno, "start %s", program);
    if (await_ready(server, err) < 0)
        return -1;
    server->work = server->pid;
    return lift_quotas(rig, err);
}

/* A port that was free a moment ago: nginx cannot choose one and say which. */
static uint16_t free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *) &at, len) < 0 ||
        getsockname(fd, (struct sockaddr *) &at, &len) < 0)
        return 0;
    return ntohs(at.sin_port);
}

int server_file(const char *path, const char *text, struct err *err)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
        return err_sys(err, errno, "write %s", path);
    return 0;
}

static int nginx_config(const struct rig *rig, const char *root, uint16_t port, char *path,
                        size_t size, struct err *err)
{
    char text[2048];

    (void) snprintf(path, size, "%s/nginx.conf", rig->dir);
    (void) snprintf(
        text, sizeof text,
        "daemon off;\nuser root;\nworker_processes 1;\npid %s/nginx.pid;\nerror_log stderr;\n"
        "events { worker_connections 8000; }\n"
        "http {\n"
        "  access_log off; sendfile on; tcp_nopush on; keepalive_requests 10000000;\n"
        "  default_type application/json; client_max_body_size 0;\n"
        "  client_body_temp_path %s/nginx-body; proxy_temp_path %s/nginx-1;\n"
        "  fastcgi_temp_path %s/nginx-2; uwsgi_temp_path %s/nginx-3; scgi_temp_path %s/nginx-4;\n"
        "  server { listen 127.0.0.1:%u; root %s; dav_methods PUT; }\n"
        "}\n",
        rig->dir, rig->dir, rig->dir, rig->dir, rig->dir, rig->dir, port, root);
    return server_file(path, text, err);
}

/* The worker: the only child of the master. */
static pid_t only_child(pid_t pid)
{
    char path[64], text[64];

    (void) snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int) pid, (int) pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) <= 0)
        return -1;
    return (pid_t) strtol(text, NULL, 10);
}

int server_nginx(struct server *server, const struct rig *rig, const char *root, struct err *err)
{
    char config[160];
    char *const argv[] = { (char *) NGINX, (char *) "-c",     config,
                           (char *) "-e",  (char *) "stderr", NULL };
    uint64_t begin = io_now_ms();
    struct caller caller;

    *server = SERVER_NONE;
    if (access(NGINX, X_OK) < 0)
        return err_sys(err, errno, NGINX);
    server->port = free_port();
    server->log = memfd_create("nginx-log", MFD_CLOEXEC);
    if (server->log < 0)
        return err_sys(err, errno, "make nginx's log");
    if (nginx_config(rig, root, server->port, config, sizeof config, err) < 0)
        return -1;
    server->pid = launch_background(argv, server->log);
    if (server->pid < 0)
        return err_sys(err, errno, "start " NGINX);
    while (caller_open(&caller, server->port, err) < 0) {
        if (io_now_ms() - begin > START_LIMIT_MS)
            return err_wrap(err, "nginx does not listen");
        (void) usleep(1000);
    }
    caller_close(&caller);
    /* The master listens first, and has its worker a moment later. */
    while ((server->work = only_child(server->pid)) <= 0) {
        if (io_now_ms() - begin > START_LIMIT_MS)
            return err_set(err, ERR_INTERNAL, "nginx has no worker");
        (void) usleep(1000);
    }
    return 0;
}

void server_stop(struct server *server)
{
    if (server->pid > 0)
        launch_end(server->pid);
    own_close(&server->log);
    *server = SERVER_NONE;
}

/* By the process's own clock: the ticks of /proc are too coarse for a load that takes a few of them. */
uint64_t server_cpu_us(const struct server *server)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(server->work, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (uint64_t) used.tv_sec * 1000000 + (uint64_t) used.tv_nsec / 1000;
}

uint64_t server_peak_kib(const struct server *server)
{
    char path[64], text[4096];
    const char *row;

    (void) snprintf(path, sizeof path, "/proc/%d/status", (int) server->work);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) <= 0)
        return 0;
    row = strstr(text, "VmHWM:");
    return row ? strtoul(row + 6, NULL, 10) : 0;
}

void server_peak_reset(const struct server *server)
{
    char path[64];

    (void) snprintf(path, sizeof path, "/proc/%d/clear_refs", (int) server->work);
    (void) io_write_text(AT_FDCWD, path, "5");
}
