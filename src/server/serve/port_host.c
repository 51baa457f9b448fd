#include "server/serve/port_host.h"

bool port_parse(struct slice text, uint16_t *ret)
{
    uint32_t port = 0;

    if (text.len < 1 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        port = 10 * port + (uint32_t) (text.at[i] - '0');
    }
    if (port < 1 || port > UINT16_MAX)
        return false;
    *ret = (uint16_t) port;
    return true;
}

bool port_host_parse(struct slice host, char ret_id[ID_LEN + 1], uint16_t *ret_port)
{
    const char *dot = host.at ? memchr(host.at, '.', host.len) : NULL;
    struct slice label = { host.at, dot ? (size_t) (dot - host.at) : 0 }, port = label;

    if (!dot || !slice_cut(&label, '-', &port) || label.len != ID_LEN ||
        !port_parse(port, ret_port) || !slice_copy(label, ret_id, ID_LEN + 1))
        return false;
    for (char *c = ret_id; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char) (*c - 'A' + 'a');
    return id_ok(ret_id);
}
