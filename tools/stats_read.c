/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parser for the JSON that a stats file has: it walks any object, and keeps the numbers and texts whose
 * names it knows.
 */
#include "stats_read.h"

#include "options.h"

#include <stdlib.h>

/* ---- what is kept ---- */

#define NUMBER(text, member) \
	{ \
		text, offsetof(struct stats_line, member) \
	}
#define WAY(way) \
	NUMBER(#way ".calls", way.calls), NUMBER(#way ".appends", way.appends), \
		NUMBER(#way ".bytes", way.bytes), NUMBER(#way ".seconds", way.seconds), \
		NUMBER(#way ".slowest", way.slowest), NUMBER(#way ".first", way.first), \
		NUMBER(#way ".last", way.last), NUMBER(#way ".sequential", way.sequential), \
		NUMBER(#way ".strided", way.strided), NUMBER(#way ".random", way.random)

static const struct number {
	const char *name;
	size_t off;
} NUMBERS[] = {
	NUMBER("plfs_stats", version),
	NUMBER("pid", pid),
	NUMBER("part", part),
	NUMBER("start", start),
	NUMBER("rank", rank),
	NUMBER("ranks", ranks),
	NUMBER("files", files),
	NUMBER("first", first),
	NUMBER("last", last),
	NUMBER("opens", opens),
	NUMBER("closes", closes),
	NUMBER("syncs", syncs),
	NUMBER("truncates", truncates),
	NUMBER("errors", errors),
	NUMBER("open_seconds", open_seconds),
	NUMBER("close_seconds", close_seconds),
	NUMBER("sync_seconds", sync_seconds),
	NUMBER("end", end),
	NUMBER("records", records),
	WAY(write),
	WAY(read),
};

static const struct {
	const char *name;
	size_t off, len;
} TEXTS[] = {
	{ "job", offsetof(struct stats_line, job), 72 },
	{ "host", offsetof(struct stats_line, host), 72 },
	{ "program", offsetof(struct stats_line, program), 72 },
	{ "stored", offsetof(struct stats_line, stored), 8 },
	{ "file", offsetof(struct stats_line, file), PATH_MAX },
};

struct parser {
	const char *p;
	struct stats_line *l;
	char name[96]; /* "write.common.len": of the value that comes */
	int at;	       /* its place in an array; -1: in none */
	int outer_at;  /* that of the object in which it is */
};

static struct stats_way *way_of(struct parser *ps)
{
	return !strncmp(ps->name, "write.", 6) ? &ps->l->write :
	       !strncmp(ps->name, "read.", 5)  ? &ps->l->read :
						 NULL;
}

static void keep_number(struct parser *ps, double nr)
{
	struct stats_way *w = way_of(ps);
	const char *last = strchr(ps->name, '.');

	for (size_t i = 0; i < ARRAY_SIZE(NUMBERS); i++)
		if (!strcmp(ps->name, NUMBERS[i].name))
			*(double *)((char *)ps->l + NUMBERS[i].off) = nr;
	if (!strncmp(ps->name, "backend.", 8) && strstr(ps->name, "_seconds"))
		ps->l->backend_seconds += nr;
	if (w && !strcmp(last, ".sizes") && ps->at >= 0 && ps->at < STATS_SIZES)
		w->sizes[ps->at] = nr;
	if (w && !strncmp(last, ".common.", 8) && ps->outer_at >= 0 && ps->outer_at < STATS_COMMON) {
		struct stats_common *c = &w->common[ps->outer_at];

		*(!strcmp(last + 8, "len")    ? &c->len :
		  !strcmp(last + 8, "stride") ? &c->stride :
						&c->calls) = nr;
	}
}

static void keep_text(struct parser *ps, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++)
		if (!strcmp(ps->name, TEXTS[i].name))
			snprintf((char *)ps->l + TEXTS[i].off, TEXTS[i].len, "%s", text);
}

/* ---- JSON ---- */

static void skip_space(struct parser *ps) { ps->p += strspn(ps->p, " \t\r\n"); }

static bool take(struct parser *ps, char c)
{
	skip_space(ps);
	if (*ps->p != c)
		return false;
	ps->p++;
	return true;
}

/* The character of \u and four digits; from \udc00 to \udcff it is a byte of a name. */
static bool put_escape(struct parser *ps, char *out, size_t *len)
{
	char digits[5] = "", *stop;
	unsigned long c;

	strncpy(digits, ps->p, 4);
	c = strtoul(digits, &stop, 16);
	if (stop != digits + 4)
		return false;
	ps->p += 4;
	if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
		out[(*len)++] = (char)c;
	} else if (c < 0x800) {
		out[(*len)++] = (char)(0xc0 | c >> 6);
		out[(*len)++] = (char)(0x80 | (c & 0x3f));
	} else {
		out[(*len)++] = (char)(0xe0 | c >> 12);
		out[(*len)++] = (char)(0x80 | (c >> 6 & 0x3f));
		out[(*len)++] = (char)(0x80 | (c & 0x3f));
	}
	return true;
}

/* A string into @out, cut at @cap. */
static bool parse_string(struct parser *ps, char *out, size_t cap)
{
	static const char escapes[] = "b\bf\fn\nr\rt\t";
	size_t len = 0;

	if (!take(ps, '"'))
		return false;
	while (*ps->p && *ps->p != '"') {
		char c = *ps->p++;

		if (len + 4 > cap)
			len = cap - 4;
		if (c != '\\') {
			out[len++] = c;
			continue;
		}
		c = *ps->p++;
		if (!c || (c == 'u' && !put_escape(ps, out, &len)))
			return false;
		if (c != 'u')
			out[len++] = strchr(escapes, c) && (strchr(escapes, c) - escapes) % 2 == 0 ?
					     strchr(escapes, c)[1] :
					     c;
	}
	out[len] = '\0';
	return take(ps, '"');
}

static bool parse_value(struct parser *ps, int depth);

static bool parse_object(struct parser *ps, int depth)
{
	size_t len = strlen(ps->name);
	char name[32];
	bool ok = true;

	if (take(ps, '}'))
		return true;
	do {
		ok = parse_string(ps, name, sizeof(name)) && take(ps, ':');
		if (!ok)
			break;
		snprintf(ps->name + len, sizeof(ps->name) - len, "%s%s", len ? "." : "", name);
		ps->at = -1;
		ok = parse_value(ps, depth);
		ps->name[len] = '\0';
	} while (ok && take(ps, ','));
	return ok && take(ps, '}');
}

static bool parse_array(struct parser *ps, int depth)
{
	int at = 0;

	if (take(ps, ']'))
		return true;
	do {
		ps->at = at++;
		if (!parse_value(ps, depth))
			return false;
	} while (take(ps, ','));
	return take(ps, ']');
}

static bool parse_word(struct parser *ps, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(ps->p, word, len))
		return false;
	ps->p += len;
	return true;
}

static bool parse_value(struct parser *ps, int depth)
{
	static char text[PATH_MAX];
	char *stop;
	double nr;

	skip_space(ps);
	if (depth > 8)
		return false;
	if (take(ps, '{')) {
		ps->outer_at = ps->at;
		return parse_object(ps, depth + 1);
	}
	if (take(ps, '['))
		return parse_array(ps, depth + 1);
	if (*ps->p == '"') {
		if (!parse_string(ps, text, sizeof(text)))
			return false;
		keep_text(ps, text);
		return true;
	}
	if (parse_word(ps, "null") || parse_word(ps, "false"))
		return true;
	if (parse_word(ps, "true")) {
		ps->l->ended |= !strcmp(ps->name, "ended");
		return true;
	}
	nr = strtod(ps->p, &stop);
	if (stop == ps->p)
		return false;
	ps->p = stop;
	keep_number(ps, nr);
	return true;
}

int stats_parse(struct stats_line *l, const char *text)
{
	struct parser ps = { .p = text, .l = l, .at = -1, .outer_at = -1 };

	memset(l, 0, sizeof(*l));
	l->rank = l->ranks = -1;
	if (!take(&ps, '{') || !parse_object(&ps, 0))
		return -1;
	skip_space(&ps);
	if (*ps.p || l->version < 1)
		return -1;
	return l->version == 1;
}

/* ---- sums ---- */

static double max(double a, double b) { return a > b ? a : b; }

static double earliest(double a, double b) { return !a ? b : !b ? a : a < b ? a : b; }

static void add_common(struct stats_way *sum, const struct stats_common *c)
{
	struct stats_common *rarest = &sum->common[0];

	for (int i = 0; i < STATS_COMMON; i++) {
		struct stats_common *k = &sum->common[i];

		if (k->calls && k->len == c->len && k->stride == c->stride) {
			k->calls += c->calls;
			return;
		}
		rarest = k->calls < rarest->calls ? k : rarest;
	}
	if (c->calls > rarest->calls)
		*rarest = *c;
}

static void add_way(struct stats_way *sum, const struct stats_way *w)
{
	sum->calls += w->calls;
	sum->appends += w->appends;
	sum->bytes += w->bytes;
	sum->seconds += w->seconds;
	sum->slowest = max(sum->slowest, w->slowest);
	sum->first = earliest(sum->first, w->first);
	sum->last = max(sum->last, w->last);
	sum->sequential += w->sequential;
	sum->strided += w->strided;
	sum->random += w->random;
	for (int i = 0; i < STATS_SIZES; i++)
		sum->sizes[i] += w->sizes[i];
	for (int i = 0; i < STATS_COMMON; i++)
		if (w->common[i].calls)
			add_common(sum, &w->common[i]);
}

static void add_line(struct stats_file *f, const struct stats_line *l)
{
	struct stats_line *sum = &f->sum;
	double busy = l->write.seconds + l->open_seconds + l->close_seconds + l->sync_seconds;

	f->processes++;
	f->killed += !l->ended;
	f->hosts += strcmp(sum->host, l->host) != 0; /* at least: lines of a host stand together */
	f->writers += l->write.bytes > 0;
	f->readers += l->read.bytes > 0;
	if (l->write.bytes > 0) {
		f->least = f->writers == 1 || l->write.bytes < f->least ? l->write.bytes : f->least;
		f->most = max(f->most, l->write.bytes);
		if (busy > f->slowest_seconds) {
			f->slowest_seconds = busy;
			f->slowest_rank = l->rank;
			memcpy(f->slowest_host, l->host, sizeof(l->host));
		}
	}
	memcpy(sum->host, l->host, sizeof(l->host));
	sum->first = earliest(sum->first, l->first);
	sum->last = max(sum->last, l->last);
	sum->ranks = max(sum->ranks, l->ranks);
	sum->files += l->files;
	sum->opens += l->opens;
	sum->closes += l->closes;
	sum->syncs += l->syncs;
	sum->truncates += l->truncates;
	sum->errors += l->errors;
	sum->open_seconds += l->open_seconds;
	sum->close_seconds += l->close_seconds;
	sum->sync_seconds += l->sync_seconds;
	sum->backend_seconds += l->backend_seconds;
	sum->records += l->records;
	sum->end = max(sum->end, l->end);
	add_way(&sum->write, &l->write);
	add_way(&sum->read, &l->read);
}

static void add(struct stats *s, const struct stats_line *l)
{
	static char key[PATH_MAX + 80];
	struct stats_file *f;

	snprintf(key, sizeof(key), "%s\n%s", l->job, l->file);
	HASH_FIND_STR(s->files, key, f);
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f || !(f->key = strdup(key))) {
			tool_error("%s", strerror(ENOMEM));
			exit(TOOL_FAILED);
		}
		memcpy(&f->sum, l, offsetof(struct stats_line, write));
		f->sum.files = f->sum.opens = f->sum.closes = f->sum.syncs = f->sum.truncates =
			f->sum.errors = 0;
		f->sum.open_seconds = f->sum.close_seconds = f->sum.sync_seconds = f->sum.records = 0;
		*f->sum.host = '\0';
		HASH_ADD_KEYPTR(hh, s->files, f->key, strlen(f->key), f);
	}
	add_line(f, l);
}

/* ---- the file ---- */

/* A process that was killed while it added lines has added them twice. */
struct seen {
	UT_hash_handle hh;
	char key[];
};

static bool is_repeated(struct seen **seen, const struct stats_line *l)
{
	static char key[PATH_MAX + 200];
	int len = snprintf(key, sizeof(key), "%s %.0f %.9f %.0f %s", l->host, l->pid, l->start, l->part,
			   l->file);
	struct seen *found;

	HASH_FIND(hh, *seen, key, (unsigned)len, found);
	if (found)
		return true;
	found = malloc(sizeof(*found) + (size_t)len + 1);
	if (found) {
		memcpy(found->key, key, (size_t)len + 1);
		HASH_ADD(hh, *seen, key, (unsigned)len, found);
	}
	return false;
}

static void complete(const char *path)
{
	struct plfs_joined j;
	int ret = plfs_stats_join(path, &j);

	if (ret)
		tool_error("%s: %s: what is in %s.parts cannot be taken in, and is left out", path,
			   strerror(-ret), path);
	else if (j.alive && !opt.quiet)
		tool_error("%s: %u processes of the job still run, and are left out", path, j.alive);
	else if (j.newer || j.damaged)
		tool_error(
			"%s.parts: what %u processes counted is of another version or damaged, and is left out",
			path, j.newer + j.damaged);
}

bool stats_read(struct stats *s, const char *path)
{
	static struct stats_line l;
	struct seen *seen = NULL, *one, *tmp;
	char *text = NULL;
	size_t cap = 0;
	ssize_t len;
	FILE *in;

	memset(s, 0, sizeof(*s));
	complete(path);
	in = fopen(path, "re");
	if (!in) {
		tool_error("%s: %s", path, strerror(errno));
		return false;
	}
	while ((len = getline(&text, &cap, in)) > 0) {
		int ret = strlen(text) == (size_t)len ? stats_parse(&l, text) : -1;

		s->lines += ret > 0;
		s->newer += !ret;
		s->damaged += ret < 0 && strspn(text, " \t\r\n") < (size_t)len;
		if (ret > 0 && is_repeated(&seen, &l))
			s->repeated++;
		else if (ret > 0)
			add(s, &l);
	}
	HASH_ITER(hh, seen, one, tmp)
	{
		HASH_DEL(seen, one);
		free(one);
	}
	free(text);
	fclose(in);
	if (s->newer)
		tool_error("%s: %u lines are of a newer version, and are left out: use a newer plfs", path,
			   s->newer);
	if (s->damaged && !s->lines && !s->newer) {
		tool_error("%s: no stats file", path);
		return false;
	}
	if (s->damaged)
		tool_error("%s: %u lines are cut or damaged, and are left out", path, s->damaged);
	return true;
}

void stats_release(struct stats *s)
{
	struct stats_file *f, *tmp;

	HASH_ITER(hh, s->files, f, tmp)
	{
		HASH_DEL(s->files, f);
		free(f->key);
		free(f);
	}
}
