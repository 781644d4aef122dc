/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON, by hand: the program's locale must not decide what a decimal point is, nor its malloc where text is.
 */
#include "core/observe/lines.h"

#include "core/base/alloc.h"
#include "core/base/vec.h"

#include <stdarg.h>
#include <stdio.h>

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *fmt, ...)
{
	va_list args;
	char *p;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	p = n < 0 ? NULL : vec_room(t->p, &t->cap, t->len + (size_t)n + 1, 1);
	if (!p) {
		t->failed = true;
		return;
	}
	t->p = p;
	va_start(args, fmt);
	vsnprintf(p + t->len, (size_t)n + 1, fmt, args);
	va_end(args);
	t->len += (size_t)n;
}

/* Bytes of the character at @s, UTF-8; 0: it is none. */
static size_t character(const unsigned char *s)
{
	size_t len = *s < 0x80		     ? 1 :
		     *s >= 0xc2 && *s < 0xe0 ? 2 :
		     *s >= 0xe0 && *s < 0xf0 ? 3 :
		     *s >= 0xf0 && *s < 0xf5 ? 4 :
					       0;

	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* too long a form, or half of a pair */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
	    (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

/* A byte that is no character stands as Python has it in names of files, \udcXX. */
static void put_string(struct text *t, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put(t, "\"");
	while (*s) {
		size_t len = character(s);

		if (!len)
			put(t, "\\udc%02x", *s);
		else if (*s < 0x20 || *s == 0x7f)
			put(t, "\\u%04x", *s);
		else if (*s == '"' || *s == '\\')
			put(t, "\\%c", *s);
		else
			put(t, "%.*s", (int)len, (const char *)s);
		s += len ? len : 1;
	}
	put(t, "\"");
}

static void put_seconds(struct text *t, const char *name, uint64_t ns)
{
	if (ns)
		put(t, ",\"%s\":%llu.%09llu", name, (unsigned long long)(ns / 1000000000),
		    (unsigned long long)(ns % 1000000000));
}

static void put_number(struct text *t, const char *name, uint64_t nr)
{
	if (nr)
		put(t, ",\"%s\":%llu", name, (unsigned long long)nr);
}

static void put_numbers(struct text *t, const char *name, const uint64_t *nr, size_t len)
{
	while (len && !nr[len - 1])
		len--;
	if (!len)
		return;
	put(t, ",\"%s\":[", name);
	for (size_t i = 0; i < len; i++)
		put(t, "%s%llu", i ? "," : "", (unsigned long long)nr[i]);
	put(t, "]");
}

/* The most frequent first. */
static void put_common(struct text *t, struct way *w)
{
	const char *comma = ",\"common\":[";

	for (;;) {
		struct common *k = w->common;

		for (int i = 1; i < COUNTERS_COMMON; i++)
			k = w->common[i].calls > k->calls ? &w->common[i] : k;
		if (!k->calls)
			break;
		put(t, "%s{\"len\":%llu,\"stride\":%lld,\"calls\":%llu}", comma, (unsigned long long)k->len,
		    (long long)k->stride, (unsigned long long)k->calls);
		comma = ",";
		k->calls = 0;
	}
	put(t, "%s", *comma && !comma[1] ? "]" : "");
}

static void put_way(struct text *t, const char *name, struct way *w)
{
	if (!w->calls && !w->bytes)
		return;
	put(t, ",\"%s\":{\"calls\":%llu", name, (unsigned long long)w->calls);
	put_number(t, "appends", w->appends);
	put(t, ",\"bytes\":%llu", (unsigned long long)w->bytes);
	put_seconds(t, "seconds", w->ns);
	put_seconds(t, "slowest", w->slowest_ns);
	put_seconds(t, "slowest_at", w->slowest_at_ns);
	put_seconds(t, "first", w->first_ns);
	put_seconds(t, "last", w->last_ns);
	put_number(t, "sequential", w->sequential);
	put_number(t, "strided", w->strided);
	put_number(t, "random", w->random);
	put_numbers(t, "sizes", w->sizes, COUNTERS_SIZES);
	put_common(t, w);
	put(t, "}");
}

static void put_backend(struct text *t, const struct work *work)
{
	static const char *const names[NR_WORKS][3] = {
		[WORK_WRITE] = { "writes", "write_bytes", "write_seconds" },
		[WORK_READ] = { "reads", "read_bytes", "read_seconds" },
		[WORK_OTHER] = { "others", "other_bytes", "other_seconds" },
	};

	if (!work[WORK_WRITE].calls && !work[WORK_READ].calls && !work[WORK_OTHER].calls)
		return;
	put(t, ",\"backend\":{\"writes\":%llu", (unsigned long long)work[WORK_WRITE].calls);
	for (int i = 0; i < NR_WORKS; i++) {
		if (i != WORK_WRITE)
			put_number(t, names[i][0], work[i].calls);
		put_number(t, names[i][1], work[i].bytes);
		put_seconds(t, names[i][2], work[i].ns);
	}
	put(t, "}");
}

static void put_rate(struct text *t, const struct counters *c)
{
	if (!c->bins_width)
		return;
	put(t, ",\"rate\":{\"width\":%llu.%04llu", (unsigned long long)(c->bins_width / 1000000000),
	    (unsigned long long)(c->bins_width % 1000000000 / 100000));
	put_seconds(t, "from", c->bins_from * c->bins_width);
	put_numbers(t, "written", c->bins[WAY_WRITE], COUNTERS_BINS);
	put_numbers(t, "read", c->bins[WAY_READ], COUNTERS_BINS);
	put(t, "}");
}

static void put_known(struct text *t, const char *name, int nr)
{
	if (nr < 0)
		put(t, ",\"%s\":null", name);
	else
		put(t, ",\"%s\":%d", name, nr);
}

static void put_process(struct text *t, const struct part_head *head, bool ended)
{
	put(t, "{\"plfs_stats\":%d,\"job\":", LINES_VERSION);
	put_string(t, head->job);
	put(t, ",\"host\":");
	put_string(t, head->host);
	put(t, ",\"pid\":%d,\"part\":%u", head->pid, head->seq);
	put_seconds(t, "start", head->start_ns);
	put_known(t, "rank", head->rank);
	put_known(t, "ranks", head->ranks);
	put(t, ",\"program\":");
	put_string(t, head->program);
	put(t, ",\"ended\":%s", ended ? "true" : "false");
}

static void put_file(struct text *t, struct counters *c)
{
	if (*c->path) {
		put(t, ",\"file\":");
		put_string(t, c->path);
		put(t, ",\"stored\":\"%s\"", c->flags & COUNTERS_LOGS ? "logs" : "plain");
	} else {
		put(t, ",\"file\":null");
	}
	put(t, ",\"files\":%llu", (unsigned long long)c->files);
	put_seconds(t, "first", c->first_ns);
	put_seconds(t, "last", c->last_ns);
	put(t, ",\"opens\":%llu", (unsigned long long)c->opens);
	put_number(t, "closes", c->closes);
	put_number(t, "syncs", c->syncs);
	put_number(t, "truncates", c->truncates);
	put_number(t, "errors", c->errors);
	put_seconds(t, "open_seconds", c->open_ns);
	put_seconds(t, "close_seconds", c->close_ns);
	put_seconds(t, "sync_seconds", c->sync_ns);
	put_number(t, "end", c->end);
	if (c->flags & COUNTERS_STREAM)
		put(t, ",\"stream\":true");
	put_way(t, "write", &c->ways[WAY_WRITE]);
	put_way(t, "read", &c->ways[WAY_READ]);
	put_backend(t, c->work);
	put_number(t, "records", c->records);
	put_rate(t, c);
}

#define READ_MIN (1 << 20)

/* A job reads many files of the system and of its languages, which are nobody's concern. */
static bool is_worth_a_line(const struct counters *c)
{
	uint64_t written = c->ways[WAY_WRITE].bytes, read = c->ways[WAY_READ].bytes;

	if (c->flags & COUNTERS_ANYWHERE)
		return written || read >= READ_MIN;
	return c->files && (c->opens || written || read || c->errors);
}

/* Runs that a killed process has left ended when they were seen last, which was within their bin. */
static uint64_t last_time(const struct counters *c) { return max_u64(c->last_ns, c->first_ns); }

void lines_add(struct text *t, const struct part_head *head, bool ended)
{
	struct counters *c = mem_alloc(sizeof(*c));

	t->failed |= !c;
	for (uint32_t i = 0; c && i < head->nr_slots; i++) {
		*c = *part_counters(head, i);
		if (!is_worth_a_line(c))
			continue;
		counters_fold(c, last_time(c));
		put_process(t, head, ended);
		put_file(t, c);
		put(t, "}\n");
	}
	mem_free(c);
}
