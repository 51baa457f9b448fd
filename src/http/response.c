#include "http/response.h"

#include "base/own.h"
#include "http/chars.h"
#include "http/date.h"

static const struct {
    uint16_t status;
    const char *reason;
} statuses[] = {
    /* clang-format off */
    { 100, "Continue" },
    { 101, "Switching Protocols" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 206, "Partial Content" },
    { 207, "Multi-Status" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 416, "Range Not Satisfiable" },
    { 417, "Expectation Failed" },
    { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },
    { 423, "Locked" },
    { 425, "Too Early" },
    { 426, "Upgrade Required" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 499, "Client Closed Request" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
    /* clang-format on */
};

static const char *const hundreds[] = {
    "Unknown", "Informational", "Success", "Redirection", "Client Error", "Server Error",
};

const char *status_reason(unsigned status)
{
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].reason;
    return hundreds[status / 100 < ARRAY_LEN(hundreds) ? status / 100 : 0];
}

bool status_has_body(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

void response_begin(struct response *response, char *buf, size_t size, unsigned status)
{
    response_begin_with(response, buf, size, status, status_reason(status));
}

void response_begin_with(struct response *response, char *buf, size_t size, unsigned status,
                         const char *reason)
{
    *response = (struct response){ .put = put_into(buf, size) };
    if (status < 100 || status > 599)
        response->bad = "status";
    put_text(&response->put, "HTTP/1.1 ");
    put_number(&response->put, status);
    put_char(&response->put, ' ');
    for (; *reason; reason++)
        put_char(&response->put, *reason >= ' ' && *reason <= '~' ? *reason : '?');
    put_text(&response->put, "\r\n");
}

static void put_name(struct response *response, const char *name)
{
    if (!char_all(slice_of(name), CHAR_TOKEN))
        response->bad = name;
    put_text(&response->put, name);
    put_text(&response->put, ": ");
}

void response_slice(struct response *response, const char *name, struct slice value)
{
    put_name(response, name);
    if (value.len > 0 && !char_all(value, CHAR_VALUE))
        response->bad = name;
    put_bytes(&response->put, value.at, value.len);
    put_text(&response->put, "\r\n");
}

void response_field(struct response *response, const char *name, const char *value)
{
    response_slice(response, name, slice_of(value));
}

void response_number(struct response *response, const char *name, uint64_t value)
{
    put_name(response, name);
    put_number(&response->put, value);
    put_text(&response->put, "\r\n");
}

void response_date(struct response *response, int64_t now)
{
    char text[DATE_SIZE];

    date_put(text, now);
    response_field(response, "Date", text);
}

ssize_t response_end(struct response *response, struct err *err)
{
    put_text(&response->put, "\r\n");
    if (response->bad)
        return err_set(err, ERR_INTERNAL, "response head: '%.40s' has bytes that are not allowed",
                       response->bad);
    if (!put_fits(&response->put))
        return err_set(err, ERR_INTERNAL, "response head: needs %zu bytes and has %zu",
                       response->put.len, response->put.size);
    return (ssize_t) response->put.len;
}
