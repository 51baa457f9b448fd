/* What a complete head says: slices of the caller's buffer. */
#include "http/head.h"
#include "http/value.h"

static struct slice text_of(const struct head *head, struct head_span span)
{
    return (struct slice){ head->buf + span.at, span.len };
}

struct slice head_method(const struct head *head)
{
    return text_of(head, head->method_text);
}

struct slice head_path(const struct head *head)
{
    return head->path.len > 0 ? text_of(head, head->path) : slice_of("/");
}

struct slice head_query(const struct head *head)
{
    return head->has_query ? text_of(head, head->query) : (struct slice){ 0 };
}

struct slice head_host(const struct head *head)
{
    return head->host.len > 0 ? text_of(head, head->host) : (struct slice){ 0 };
}

struct slice head_field_name(const struct head *head, size_t index)
{
    return text_of(head, head->fields[index].name);
}

struct slice head_field_value(const struct head *head, size_t index)
{
    return text_of(head, head->fields[index].value);
}

/* From `index` on; field_count if there is no more. */
static size_t find(const struct head *head, const char *name, size_t index)
{
    while (index < head->field_count && !slice_is_nocase(head_field_name(head, index), name))
        index++;
    return index;
}

struct slice head_get(const struct head *head, const char *name)
{
    size_t index = find(head, name, 0);

    return index < head->field_count ? head_field_value(head, index) : (struct slice){ 0 };
}

size_t head_count(const struct head *head, const char *name)
{
    size_t count = 0;

    for (size_t i = find(head, name, 0); i < head->field_count; i = find(head, name, i + 1))
        count++;
    return count;
}

struct head_list head_list(const struct head *head, const char *name)
{
    return (struct head_list){ .head = head, .name = name };
}

bool head_list_next(struct head_list *list, struct slice *ret_item)
{
    while (!value_list_next(&list->rest, ret_item)) {
        size_t index = find(list->head, list->name, list->index);

        if (index >= list->head->field_count)
            return false;
        list->rest = head_field_value(list->head, index);
        list->index = index + 1;
    }
    return true;
}

bool head_has(const struct head *head, const char *name, const char *word)
{
    struct head_list list = head_list(head, name);
    struct slice item;

    while (head_list_next(&list, &item))
        if (slice_is_nocase(item, word))
            return true;
    return false;
}
