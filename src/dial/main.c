/* cove-dial: a connection to a server on another host, for the command line, which has neither a resolver nor TLS.
 *
 *   cove-dial tls|plain|tls-public|plain-public HOST PORT [AUTHORITIES.pem [PROXY:PORT [SECONDS]]]
 *
 * Standard input is one end of a pair of sockets. When the connection stands, it gets the byte '+', and then bytes pass both ways
 * until either side ends. Before that, anything written to it is a sentence about what failed.
 *
 * With -public, only public addresses are connected to (base/special.h), and none of this host: the host's name came from
 * another server, or from a tenant. A proxy is asked to CONNECT, and looks up the name itself: which addresses it refuses is its
 * own business, but for addresses that are given as such. SECONDS: the connection ends then, whatever is under way. Empty
 * arguments are absent ones.
 *
 * Never:   sends a byte of the caller's before the server's certificate was checked against the authorities and the name. */
#include "base/io.h"
#include "base/own.h"
#include "base/own_address.h"
#include "base/special.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOCAL      STDIN_FILENO
#define PIECE      65536
#define CONNECT_MS 30000

static int fail(const char *what, const char *why)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%s: %s", what, why);

    (void) io_write_all(LOCAL, text, n < (int) sizeof text ? (size_t) n : sizeof text - 1);
    return 1;
}

/* ---- TCP ---- */

static bool wait_for(int fd, short events, int ms)
{
    struct pollfd p = { .fd = fd, .events = events };

    return poll(&p, 1, ms) == 1;
}

static int connect_one(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, why = 0;
    socklen_t len = sizeof why;

    if (fd < 0)
        return -1;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS) {
        if (!wait_for(fd, POLLOUT, CONNECT_MS))
            errno = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) == 0 && why == 0)
            return fd;
        else
            errno = why;
    }
    why = errno;
    (void) close(fd);
    errno = why;
    return -1;
}

/* Neither special nor of this host, also as the address inside it. */
static bool is_elsewhere(const uint8_t address[16])
{
    uint8_t inner[16];

    return !special_find(address) && !own_address(address) &&
           !(special_inner(address, inner) && own_address(inner));
}

static bool is_public(const struct sockaddr *at)
{
    uint8_t address[16] = { [10] = 0xff, [11] = 0xff };

    if (at->sa_family == AF_INET)
        memcpy(address + 12, &((const struct sockaddr_in *) (const void *) at)->sin_addr, 4);
    else if (at->sa_family == AF_INET6)
        memcpy(address, &((const struct sockaddr_in6 *) (const void *) at)->sin6_addr, 16);
    else
        return false;
    return is_elsewhere(address);
}

static int dial(const char *host, const char *port, bool public_only, const char **ret_why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    int r = getaddrinfo(host, port, &hints, &list), fd = -1;

    *ret_why = r ? gai_strerror(r) : "no address";
    for (const struct addrinfo *at = list; at && fd < 0; at = at->ai_next) {
        if (public_only && !is_public(at->ai_addr)) {
            *ret_why = "the address is not public";
            continue;
        }
        fd = connect_one(at);
        if (fd < 0)
            *ret_why = strerror(errno);
    }
    if (list)
        freeaddrinfo(list);
    return fd;
}

/* ---- proxy ---- */

#define HEAD_MOST 8192

/* The proxy's answer, byte by byte: what is behind its head is the server's. */
static bool read_answer(int fd)
{
    char head[HEAD_MOST + 1];
    size_t len = 0;

    while (len < HEAD_MOST && (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0)) {
        ssize_t n;

        if (!wait_for(fd, POLLIN, CONNECT_MS))
            return false;
        n = recv(fd, head + len, 1, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        len += n > 0;
    }
    head[len] = '\0';
    return strncmp(head, "HTTP/1.", 7) == 0 && strncmp(head + 8, " 200", 4) == 0;
}

/* Of a host that a proxy will look up: an address, or a name that is always this host's. */
static bool names_inside(const char *host)
{
    uint8_t address[16] = { [10] = 0xff, [11] = 0xff };
    size_t len = strlen(host);

    if (inet_pton(AF_INET, host, address + 12) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return !is_elsewhere(address);
    return strcasecmp(host, "localhost") == 0 ||
           (len > 10 && strcasecmp(host + len - 10, ".localhost") == 0) ||
           strspn(host, "0123456789.xX") == len; /* other ways to write an address */
}

static int dial_by(const char *proxy, const char *host, const char *port, bool public_only,
                   const char **ret_why)
{
    const char *colon = strrchr(proxy, ':');
    bool six = strchr(host, ':');
    char name[256], request[1200];
    int fd, n;

    *ret_why = "the address is not public";
    if (public_only && names_inside(host))
        return -1;
    *ret_why = "the proxy is not HOST:PORT";
    if (!colon || (size_t) (colon - proxy) >= sizeof name)
        return -1;
    (void) snprintf(name, sizeof name, "%.*s", (int) (colon - proxy), proxy);
    fd = dial(name, colon + 1, false, ret_why);
    if (fd < 0)
        return -1;
    n = snprintf(request, sizeof request,
                 six ? "CONNECT [%s]:%s HTTP/1.1\r\nHost: [%s]:%s\r\n\r\n"
                     : "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n",
                 host, port, host, port);
    *ret_why = "the proxy refuses";
    if (io_write_all(fd, request, (size_t) n) == 0 && read_answer(fd))
        return fd;
    (void) close(fd);
    return -1;
}

/* ---- TLS ---- */

static const char *tls_why(SSL *ssl)
{
    long verdict = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    if (verdict != X509_V_OK)
        return X509_verify_cert_error_string(verdict);
    return text ? text : "the server does not speak TLS";
}

static bool is_address(const char *host)
{
    unsigned char out[16];

    return inet_pton(AF_INET, host, out) == 1 || inet_pton(AF_INET6, host, out) == 1;
}

static SSL *tls_new(const char *host, const char *authorities, const char **ret_why)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = NULL;
    int good;

    *ret_why = "cannot start TLS";
    if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION))
        return NULL;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    good = authorities ? SSL_CTX_load_verify_locations(context, authorities, NULL)
                       : SSL_CTX_set_default_verify_paths(context);
    if (!good) {
        *ret_why = "the authorities cannot be read";
        return NULL;
    }
    ssl = SSL_new(context);
    if (!ssl)
        return NULL;
    good = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host)
                            : SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
    return good ? ssl : NULL;
}

static bool handshake(SSL *ssl, int fd)
{
    int r;

    if (!SSL_set_fd(ssl, fd))
        return false;
    while ((r = SSL_connect(ssl)) != 1) {
        int want = SSL_get_error(ssl, r);

        if ((want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE) ||
            !wait_for(fd, want == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, CONNECT_MS))
            return false;
    }
    return SSL_get_verify_result(ssl) == X509_V_OK;
}

/* ---- bytes ---- */

struct way {
    char data[PIECE];
    size_t at, len;
    bool ended; /* no more comes in */
    bool told;  /* and the other side knows */
};

/* count, 0 at the end, -1: not now, -2: broken. */
static ssize_t far_read(SSL *ssl, int fd, void *out, size_t size)
{
    ssize_t n;
    int r;

    if (!ssl) {
        n = recv(fd, out, size, MSG_DONTWAIT);
        return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -1 : -2;
    }
    r = SSL_read(ssl, out, (int) size);
    if (r > 0)
        return r;
    switch (SSL_get_error(ssl, r)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return -2;
    }
}

static ssize_t far_write(SSL *ssl, int fd, const void *data, size_t len)
{
    ssize_t n;
    int r;

    if (!ssl) {
        n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -1 : -2;
    }
    r = SSL_write(ssl, data, (int) len);
    if (r > 0)
        return r;
    r = SSL_get_error(ssl, r);
    return r == SSL_ERROR_WANT_READ || r == SSL_ERROR_WANT_WRITE ? -1 : -2;
}

static bool pump_out(struct way *out, SSL *ssl, int fd)
{
    ssize_t n;

    if (out->at == out->len && !out->ended) {
        n = recv(LOCAL, out->data, sizeof out->data, MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        out->ended = n == 0;
        out->at = 0;
        out->len = n > 0 ? (size_t) n : 0;
    }
    if (out->at < out->len) {
        n = far_write(ssl, fd, out->data + out->at, out->len - out->at);
        if (n == -2)
            return false;
        out->at += n > 0 ? (size_t) n : 0;
    }
    if (out->ended && out->at == out->len && !out->told) {
        out->told = true;
        if (ssl)
            (void) SSL_shutdown(ssl);
        else
            (void) shutdown(fd, SHUT_WR);
    }
    return true;
}

static bool pump_in(struct way *in, SSL *ssl, int fd)
{
    ssize_t n;

    if (in->at == in->len && !in->ended) {
        n = far_read(ssl, fd, in->data, sizeof in->data);
        if (n == -2)
            return false;
        in->ended = n == 0;
        in->at = 0;
        in->len = n > 0 ? (size_t) n : 0;
    }
    if (in->at < in->len) {
        n = send(LOCAL, in->data + in->at, in->len - in->at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        in->at += n > 0 ? (size_t) n : 0;
    }
    return !(in->ended && in->at == in->len);
}

static void relay(SSL *ssl, int fd)
{
    static struct way out, in;
    bool gone =
        false; /* the caller, as a whole and not only done with writing: nothing more can be told to it */

    while (pump_out(&out, ssl, fd) && pump_in(&in, ssl, fd)) {
        bool idle_in = in.at == in.len, idle_out = out.at == out.len;
        struct pollfd fds[] = {
            { .fd = gone ? -1 : LOCAL,
              .events = (short) ((idle_out && !out.ended ? POLLIN : 0) | (idle_in ? 0 : POLLOUT)) },
            { .fd = fd, .events = (short) ((idle_in ? POLLIN : 0) | (idle_out ? 0 : POLLOUT)) },
        };

        if (ssl && idle_in && SSL_pending(ssl) > 0)
            continue;
        if (gone && out.ended && idle_out)
            return;
        if (poll(fds, 2, gone && idle_out ? 0 : -1) > 0 && (fds[0].revents & (POLLERR | POLLHUP)))
            gone = true;
    }
}

int main(int argc, char **argv)
{
    const char *why = "";
    SSL *ssl = NULL;
    bool public_only;
    int fd;

    if (argc < 4 || argc > 7)
        return 64;
    (void) signal(SIGPIPE, SIG_IGN);
    (void) prctl(PR_SET_NAME, "cove-dial"); /* not "4", when it was started by a descriptor */
    if (argc == 7)
        (void) alarm((unsigned) strtoul(argv[6], NULL, 10));
    public_only = strstr(argv[1], "-public") != NULL;
    fd = argc >= 6 && argv[5][0] ? dial_by(argv[5], argv[2], argv[3], public_only, &why)
                                 : dial(argv[2], argv[3], public_only, &why);
    if (fd < 0)
        return fail(argv[2], why);
    if (strncmp(argv[1], "tls", 3) == 0) {
        ssl = tls_new(argv[2], argc >= 5 && argv[4][0] ? argv[4] : NULL, &why);
        if (!ssl)
            return fail(argv[2], why);
        if (!handshake(ssl, fd))
            return fail(argv[2], tls_why(ssl));
    }
    /* Keys of the terminal are meant for the caller, which passes them on over this connection. */
    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGQUIT, SIG_IGN);
    (void) signal(SIGHUP, SIG_IGN);
    if (io_write_all(LOCAL, "+", 1) < 0)
        return 1;
    relay(ssl, fd);
    return 0;
}
