/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first line of a script.
 */
#include "core/base/script.h"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The first byte in [p, end] that is not blank, or NULL. */
static char *skip_blanks(char *p, const char *end)
{
	while (p <= end && is_blank(*p))
		p++;
	return p <= end ? p : NULL;
}

/* The first blank or zero in [p, end], or NULL. */
static char *find_blank(char *p, const char *end)
{
	while (p <= end && *p && !is_blank(*p))
		p++;
	return p <= end ? p : NULL;
}

/*
 * Where the line ends, without the blanks before; NULL if the interpreter's name may go on behind the last
 * byte.
 */
static char *find_end(char *head)
{
	char *last = head + SCRIPT_HEAD_LEN - 1;
	char *end = memchr(head, '\n', SCRIPT_HEAD_LEN), *name;

	if (!end) {
		name = skip_blanks(head + 2, last);
		if (!name || !find_blank(name, last))
			return NULL;
		end = last;
	}
	while (is_blank(end[-1]))
		end--;
	return end;
}

int script_parse(struct script *s, char *head)
{
	char *end = find_end(head), *blank;

	s->arg = NULL;
	s->interpreter = end ? skip_blanks(head + 2, end) : NULL;
	if (!s->interpreter || s->interpreter == end)
		return -ENOEXEC;
	blank = find_blank(s->interpreter, end);
	if (blank && *blank)
		s->arg = skip_blanks(blank, end);
	*end = '\0';
	if (s->arg)
		*blank = '\0';
	return 0;
}
