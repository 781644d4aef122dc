/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes a trace apart. The bytes may be anybody's: a number is only believed where it does no harm.
 */
#include "report_words.h"

#include "core/base/bytes.h"
#include "core/base/vec.h"

#define MAGIC "PLFSTRC1"
#define VERSION 1
#define HEADER_LEN 4096
#define WORD_LEN 16
#define NAME_PART 12
#define NR_STREAMS 256

enum { WORD_RUN = 16, WORD_BUSY = 17, WORD_STREAM = 32, WORD_NAME = 33, WORD_BASE = 34, WORD_CLOCK = 35,
       WORD_LENGTH = 36, WORD_FULL = 47 };
enum { CALL_FAILED = 64, CALL_PAGES = 128, CALL_PAGE = 4096 };

struct stream {
	uint64_t base;
	unsigned file;
	bool in_logs;
};

struct words {
	const struct trace_head *head;
	const struct trace_sink *sink;
	struct stream streams[NR_STREAMS];
	char **names; /* until they are said */
	size_t nr_names, cap_names;
	uint64_t clock;        /* in ticks: starts are near it */
	uint64_t length;       /* of the next call; 0: as it says */
	struct trace_call last;
	bool any; /* last has not been given yet */
};

static void take_text(char *to, const uint8_t *from)
{
	memcpy(to, from, TRACE_TEXT);
	to[TRACE_TEXT] = '\0';
}

int trace_head_decode(struct trace_head *head, const uint8_t *buf, size_t len)
{
	if (len < HEADER_LEN || memcmp(buf, MAGIC, 7) != 0)
		return -EBADMSG;
	if (buf[7] != MAGIC[7] || get_le32(buf + 8) > VERSION)
		return -EPROTONOSUPPORT;
	if (get_le32(buf + 12) != HEADER_LEN || !get_le32(buf + 24))
		return -EBADMSG;
	head->start_ns = get_le64(buf + 16);
	head->tick_ns = get_le32(buf + 24);
	head->pid = get_le32(buf + 28);
	head->rank = get_le32(buf + 32);
	head->ranks = get_le32(buf + 36);
	head->ended = get_le32(buf + 40);
	head->left_out = get_le64(buf + 48);
	head->left_out_bytes = get_le64(buf + 56);
	take_text(head->host, buf + 64);
	take_text(head->job, buf + 128);
	take_text(head->program, buf + 192);
	return 0;
}

/* ---- calls ---- */

/* @low: the lowest 32 bits of a time in ticks that is near the clock. */
static uint64_t begin_ns(const struct words *w, uint32_t low)
{
	int64_t ticks = (int64_t)w->clock + (int32_t)(low - (uint32_t)w->clock);

	if (ticks < 0)
		ticks += 1LL << 32;
	return w->head->start_ns + (uint64_t)ticks * w->head->tick_ns;
}

static void say_name(struct words *w, unsigned file)
{
	if (file >= w->nr_names || !w->names[file])
		return;
	w->sink->name(w->sink->arg, file, w->names[file]);
	mem_free(w->names[file]);
	w->names[file] = NULL;
}

static void end_call(struct words *w)
{
	if (w->any)
		w->sink->call(w->sink->arg, &w->last);
	w->any = false;
}

static void begin_call(struct words *w, const uint8_t *p)
{
	const struct stream *s = &w->streams[p[1]];
	uint64_t both = get_le64(p + 8), len = both >> 40;
	uint16_t dur = get_le16(p + 2);
	struct trace_call *c = &w->last;

	if (p[0] & CALL_PAGES)
		len *= CALL_PAGE;
	*c = (struct trace_call){
		.kind = p[0] & 15, .failed = p[0] & CALL_FAILED, .count = 1,
		.in_logs = s->in_logs, .file = s->file,
		.off = s->base + (both & ((1ULL << 40) - 1)), .len = w->length ? w->length : len,
		.begin_ns = begin_ns(w, get_le32(p + 4)), .span_ns = (uint64_t)(dur & 2047) << (dur >> 11),
	};
	c->call_ns = c->slowest_ns = c->span_ns;
	w->length = 0;
	w->any = true;
	say_name(w, c->file);
}

/* Until the word "busy" comes, a run takes as long as its calls would one behind the other. */
static bool make_run(struct words *w, const uint8_t *p)
{
	struct trace_call *c = &w->last;

	if (!w->any || c->count > 1 || get_le32(p + 4) < 2)
		return false;
	c->count = get_le32(p + 4);
	c->stride = (int64_t)get_le64(p + 8);
	c->call_ns = c->span_ns *= c->count;
	return true;
}

static bool time_run(struct words *w, const uint8_t *p)
{
	struct trace_call *c = &w->last;

	if (!w->any || c->count == 1)
		return false;
	c->span_ns = (uint64_t)get_le32(p + 4) * w->head->tick_ns;
	c->call_ns = get_le64(p + 8);
	return true;
}

/* ---- definitions ---- */

static bool define_stream(struct words *w, const uint8_t *p)
{
	struct stream *s = &w->streams[p[1]];

	s->file = get_le16(p + 2);
	s->in_logs = get_le64(p + 8) & 1;
	s->base = 0;
	return true;
}

static bool make_names(struct words *w, unsigned file)
{
	char **names = vec_room(w->names, &w->cap_names, file + 1, sizeof(*names));

	if (!names)
		return false;
	w->names = names;
	while (w->nr_names <= file)
		names[w->nr_names++] = NULL;
	return true;
}

static bool add_name(struct words *w, const uint8_t *p)
{
	unsigned file = get_le16(p + 2);
	size_t had;
	char *name;

	if (p[1] > NAME_PART || file == TRACE_NO_FILE || !make_names(w, file))
		return false;
	had = w->names[file] ? strlen(w->names[file]) : 0;
	if (had >= PATH_MAX)
		return false;
	name = mem_realloc(w->names[file], had + p[1] + 1);
	if (!name)
		return false;
	memcpy(name + had, p + 4, p[1]);
	name[had + p[1]] = '\0';
	w->names[file] = name;
	return true;
}

static bool take_word(struct words *w, const uint8_t *p)
{
	if ((p[0] & 63) >= TRACE_OPEN && (p[0] & 63) <= TRACE_OTHER) {
		end_call(w);
		begin_call(w, p);
		return true;
	}
	switch (p[0]) {
	case WORD_RUN:
		return make_run(w, p);
	case WORD_BUSY:
		return time_run(w, p);
	case WORD_STREAM:
		return define_stream(w, p);
	case WORD_NAME:
		return add_name(w, p);
	case WORD_BASE:
		w->streams[p[1]].base = get_le64(p + 8);
		return true;
	case WORD_CLOCK:
		w->clock = get_le64(p + 8) / w->head->tick_ns;
		return true;
	case WORD_LENGTH:
		w->length = get_le64(p + 8);
		return true;
	}
	return false;
}

ssize_t trace_each(const struct trace_head *head, const uint8_t *buf, size_t len,
		   const struct trace_sink *sink)
{
	struct words *w = mem_zalloc(sizeof(*w));
	ssize_t ret = 0;

	if (!w)
		return -ENOMEM;
	w->head = head;
	w->sink = sink;
	for (size_t i = 0; i < NR_STREAMS; i++)
		w->streams[i].file = TRACE_NO_FILE;
	for (size_t pos = HEADER_LEN; !ret && pos + WORD_LEN <= len; pos += WORD_LEN) {
		if (!buf[pos] || buf[pos] == WORD_FULL)
			break;
		ret = take_word(w, buf + pos) ? 0 : (ssize_t)pos;
	}
	end_call(w);
	for (size_t i = 0; i < w->nr_names; i++)
		mem_free(w->names[i]);
	mem_free(w->names);
	mem_free(w);
	return ret;
}
