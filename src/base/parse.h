/* parse.h - numbers as people type them. Whole string or nothing: "5x", "", " 5" and "-0" are
 * errors, and so is a value that does not fit. Pure; fuzzed. */
#ifndef COVE_BASE_PARSE_H
#define COVE_BASE_PARSE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits only. */
int parse_u64(const char *text, uint64_t *ret_value, struct err *err);

/* "4096", "64k", "512m", "1.5g", "2t"; also "KiB", "MB" and the like: always powers of 1024. */
int parse_size(const char *text, uint64_t *ret_bytes, struct err *err);

/* The other way, for people: "512 MiB", "1.5 GiB", "0 B". Returns out. */
#define SIZE_TEXT_MAX 32
const char *size_text(char *out, size_t size, uint64_t bytes);

/* "500ms", "60s", "60" (seconds), "5m", "2h", "1d", "1.5s". */
int parse_duration_ms(const char *text, uint64_t *ret_ms, struct err *err);

/* "2", "0.5", "1.25": thousandths of a core; finer is an error. */
int parse_cpus_milli(const char *text, uint32_t *ret_milli, struct err *err);

/* "80,443": ports from 1 to 65535, each once in out however often it was named; "": no port. ERR_TOO_BIG past most. */
int parse_port_list(const char *text, uint16_t *out, size_t most, size_t *ret_count,
                    struct err *err);

/* Octal file mode: "644", "0755". */
int parse_mode(const char *text, uint32_t *ret_mode, struct err *err);

/* [a-z0-9] with inner [a-z0-9-_.], 1 to 63 characters: names of sandboxes and templates. */
bool name_ok(const char *text);

/* 'i' and 20 of [a-z0-9]. */
#define ID_LEN 21
bool id_ok(const char *text);

#endif
