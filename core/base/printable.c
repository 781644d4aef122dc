/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telling UTF-8 from other bytes, and escapes.
 */
#include "core/base/printable.h"

/* The length of the UTF-8 character, above U+007F, at @p; 0: it is none, or not whole. */
static size_t utf8_len(const uint8_t *p, size_t len)
{
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

	if (p[0] < 0xc2 || p[0] > 0xf4 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* longer than it need be, a surrogate, beyond the last character */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

size_t printable_char(const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t n;

	if (likely(*p < 0x80))
		return *p >= 0x20 && *p != 0x7f;
	n = utf8_len(p, len);
	return n == 2 && p[0] == 0xc2 && p[1] < 0xa0 ? 0 : n;
}

bool is_printable(const char *text, size_t len)
{
	size_t n;

	for (; len; text += n, len -= n) {
		n = printable_char(text, len);
		if (!n)
			return false;
	}
	return true;
}

/* Into PRINTABLE_MAX bytes; returns how many. */
static size_t escape(char *out, uint8_t c)
{
	static const char hex[] = "0123456789abcdef";
	const char *known = strchr("\nn\tt\rr", c);

	out[0] = '\\';
	if (c && known) {
		out[1] = known[1];
		return 2;
	}
	out[1] = 'x';
	out[2] = hex[c >> 4];
	out[3] = hex[c & 15];
	return 4;
}

size_t printable_copy(char *out, size_t cap, const char *text, size_t len)
{
	size_t done = 0;

	while (len) {
		char escaped[PRINTABLE_MAX];
		size_t n = printable_char(text, len), want = n ? n : escape(escaped, (uint8_t)*text);

		if (want > cap - done)
			break;
		memcpy(out + done, n ? text : escaped, want);
		done += want;
		text += n ? n : 1;
		len -= n ? n : 1;
	}
	return done;
}
