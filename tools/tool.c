/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs share: messages, numbers, and the end.
 */
#include "tool.h"

#include "core/base/printable.h"

#include <stdlib.h>

/* The text, and @end as it is. */
__attribute__((format(printf, 2, 0)))
static void put(FILE *to, const char *fmt, va_list args, const char *end)
{
	char *text, *escaped;
	int n = vasprintf(&text, fmt, args);
	size_t len = n < 0 ? 0 : (size_t)n;

	if (n < 0)
		return;
	escaped = malloc(len * PRINTABLE_MAX + 1);
	if (escaped)
		fwrite(escaped, 1, printable_copy(escaped, len * PRINTABLE_MAX, text, len), to);
	fputs(end, to);
	free(escaped);
	free(text);
}

__attribute__((format(printf, 1, 0)))
static void print_error(const char *fmt, va_list args, const char *end)
{
	fflush(stdout);
	fputs("plfs: ", stderr);
	put(stderr, fmt, args, end);
}

void tool_print(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put(stdout, fmt, args, "\n");
	va_end(args);
}

void tool_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_error(fmt, args, "\n");
	va_end(args);
}

int tool_misuse(const char *verb, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_error(fmt, args, "");
	va_end(args);
	fprintf(stderr, " (see: plfs %s%s--help)\n", verb, *verb ? " " : "");
	return TOOL_USAGE;
}

const char *tool_join_map(const char *map, const char *more)
{
	char *joined;

	if (!map || !*map || asprintf(&joined, "%s:%s", map, more) < 0)
		return more;
	return joined;
}

bool tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *nr)
{
	char *end;

	errno = 0;
	*nr = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *nr >= least && *nr <= most;
}

bool tool_in_bytes;

const char *tool_size(uint64_t bytes, char *out)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double scaled = (double)bytes / 1024;
	unsigned unit = 0;

	for (; scaled >= 1023.95 && unit + 1 < ARRAY_SIZE(units); unit++)
		scaled /= 1024;
	if (bytes < 1024 || tool_in_bytes)
		snprintf(out, TOOL_SIZE_LEN, "%llu bytes", (unsigned long long)bytes);
	else
		snprintf(out, TOOL_SIZE_LEN, "%.1f %s", scaled, units[unit]);
	return out;
}

int tool_finish(int rc)
{
	if (fflush(stdout) || ferror(stdout)) {
		tool_error("standard output: %s", strerror(errno));
		return rc ? rc : TOOL_FAILED;
	}
	return rc;
}

void tool_print_json(const char *s)
{
	size_t n;

	putchar('"');
	for (size_t len = strlen(s); len; s += n, len -= n) {
		uint8_t c = (uint8_t)*s;

		n = printable_char(s, len);
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if (n)
			fwrite(s, 1, n, stdout);
		else if (c < 0x80)
			printf("\\u%04x", c);
		else if (c == 0xc2 && len > 1 && ((uint8_t)s[1] & 0xe0) == 0x80)
			printf("\\u%04x", (uint8_t)s[1]);
		else
			printf("\\udc%02x", c);
		n = n ? n : c == 0xc2 && len > 1 && ((uint8_t)s[1] & 0xe0) == 0x80 ? 2 : 1;
	}
	putchar('"');
}
