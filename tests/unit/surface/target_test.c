#include "surface/e2b/e2b.h"

#include "server/serve/port_host.h"

#include "check.h"

#include <string.h>

#define ID "i0000abcdefghijklmnop"

static void a_host_names_port_and_sandbox(void)
{
    char id[ID_LEN + 1] = "";
    uint16_t port = 0;

    CHECK(port_host_parse(slice_of("49983-" ID ".localhost"), id, &port));
    CHECK_STR(id, ID);
    CHECK_INT(port, 49983);
    CHECK(port_host_parse(slice_of("1-" ID ".sandboxes.example.com"), id, &port));
    CHECK_INT(port, 1);
    CHECK(port_host_parse(slice_of("80-I0000ABCDEFGHIJKLMNOP.x"), id,
                          &port)); /* names have no case */
    CHECK_STR(id, ID);
}

static void other_hosts_name_none(void)
{
    static const char *const rows[] = {
        "localhost",   "127.0.0.1",    "49983-" ID,
        "-" ID ".x",   "0-" ID ".x",   "65536-" ID ".x",
        "+1-" ID ".x", "80-" ID "q.x", "80-i0000abcdefghijklmno.x",
        "80." ID ".x", "80--" ID ".x", ".x",
    };
    char id[ID_LEN + 1];
    uint16_t port;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK(!port_host_parse(slice_of(rows[i]), id, &port));
}

static void a_signature_is_that_of_the_sdk(void)
{
    char signature[E2B_SIGNATURE_MAX];

    e2b_signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", NULL, signature);
    CHECK_STR(signature, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
    e2b_signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", "1", signature);
    CHECK(strcmp(signature, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E") != 0);
}

static void notes_come_back_as_they_were(void)
{
    struct e2b_notes notes = { .secure = false,
                               .public_traffic = false,
                               .auto_resume = true,
                               .internet = 0 },
                     back;
    char text[OPS_NOTES_MAX];
    struct err err;

    CHECK_INT(e2b_notes_print(&notes, text, sizeof text, &err), 0);
    e2b_notes_read(text, &back);
    CHECK(!back.secure && !back.public_traffic && back.auto_resume && back.internet == 0);
    e2b_notes_read("", &back);
    CHECK(back.secure && back.public_traffic && !back.auto_resume && back.internet == -1);
}

CHECK_MAIN(T(a_host_names_port_and_sandbox), T(other_hosts_name_none),
           T(a_signature_is_that_of_the_sdk), T(notes_come_back_as_they_were))
