/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a history and the pipes that keep them in step, the model, and the search for a shorter
 * history.
 */
#include "test/lib/order.h"

#include <poll.h>
#include <sys/mman.h>

enum { ORDER_TEXT = 200, ORDER_NEW = ORDER_PLAYERS, ORDER_CLOSED };

/*
 * Shared by the processes: the history, the file as it must be, and the complaint of each process that finds
 * it otherwise.
 */
struct stage_of_play {
	struct history h;
	int at; /* the present step */
	char name[32];
	uint32_t size;
	unsigned char model[ORDER_LEN];
	char said[ORDER_PLAYERS + 2][ORDER_TEXT];
};

static struct stage_of_play *play_of;
static int order_calls[ORDER_PLAYERS][2], order_answers[ORDER_PLAYERS][2];
static int order_players;

/* ---- the processes ---- */

static void order_fill(void *buf, const struct step *s, int nr)
{
	pattern_fill(buf, s->len, s->off, (unsigned)nr + 1);
}

/* Whose byte it is: the step's number, 0 for a zero, -1 for neither. */
static int order_whose(const unsigned char *bytes, uint32_t off)
{
	for (int i = play_of->at; i >= 0; i--) {
		const struct step *s = &play_of->h.step[i];

		if (s->op == OP_WRITE && off >= s->off && off < s->off + s->len &&
		    bytes[off] == pattern_byte(off, (unsigned)i + 1))
			return i + 1;
	}
	return bytes[off] ? -1 : 0;
}

static unsigned char order_buf[ORDER_LEN + 1];

static void order_look(struct lfile *l, uint32_t off, uint32_t len, char *said)
{
	ssize_t n = plfs_pread(l->f, order_buf + off, len, off);

	if (off + len > play_of->size)
		len = play_of->size - off;
	if (n != len)
		snprintf(said, ORDER_TEXT, "reads %zd bytes, not %u, at %u", n, len, off);
	if (n != len || !memcmp(order_buf + off, play_of->model + off, len))
		return;
	while (order_buf[off] == play_of->model[off])
		off++;
	snprintf(said, ORDER_TEXT, "byte %u is of step %d, not of step %d", off, order_whose(order_buf, off),
		 order_whose(play_of->model, off));
}

static void order_look_whole(struct lfile *l, char *said)
{
	off_t size;

	order_look(l, 0, play_of->size, said);
	if (!*said)
		order_look(l, 0, ORDER_LEN + 1, said);
	size = plfs_size(l->f);
	if (!*said && size != play_of->size)
		snprintf(said, ORDER_TEXT, "gets a size of %lld, not %u", (long long)size, play_of->size);
}

static void order_look_after(struct lfile *l, char *said)
{
	const struct step *s = &play_of->h.step[play_of->at];
	uint32_t within = play_of->size - s->look_off;

	if (s->looks_whole)
		order_look_whole(l, said);
	else if (s->look_off < play_of->size)
		order_look(l, s->look_off, within < s->look_len ? within : s->look_len, said);
}

static void order_write(struct lfile *l, const struct step *s, char *said)
{
	static unsigned char buf[ORDER_LEN];
	ssize_t n;

	order_fill(buf, s, play_of->at);
	n = plfs_pwrite(l->f, buf, s->len, s->off);
	if (n != s->len)
		snprintf(said, ORDER_TEXT, "writes %zd bytes", n);
}

/* Does the present step. */
static void order_do(struct lfile *l, char *said)
{
	const struct step *s = &play_of->h.step[play_of->at];
	int ret = 0;

	if (s->op == OP_WRITE)
		order_write(l, s, said);
	else if (s->op == OP_CUT)
		ret = plfs_truncate(l->f, s->off);
	else if (s->op == OP_RELEASE)
		ret = plfs_commit(l->f);
	else if (s->op == OP_PAUSE)
		ret = usleep(s->len * 1000);
	else
		ret = lclose(l) ?: ltry(l, play_of->name, O_RDWR);
	if (ret)
		snprintf(said, ORDER_TEXT, "fails: %d", ret);
}

/* A process: does what it is called for, a byte, and answers with one. */
static int order_player(void *arg)
{
	int me = *(int *)arg;
	struct lfile l = { .fd = -1 };
	char call;

	while (read(order_calls[me][0], &call, 1) == 1) {
		if (call == 'o')
			l = made(play_of->name);
		else if (call == 's')
			order_do(&l, play_of->said[me]);
		else if (call == 'l')
			order_look_after(&l, play_of->said[me]);
		else if (call == 'w')
			order_look_whole(&l, play_of->said[me]);
		else if (lclose(&l))
			snprintf(play_of->said[me], ORDER_TEXT, "cannot close");
		if (write(order_answers[me][1], &call, 1) != 1)
			return 1;
	}
	return 0;
}

/* Call the processes of @mask, which then do it at once, and wait for all. */
static void order_call(unsigned mask, char what)
{
	for (int i = 0; i < order_players; i++)
		if (mask >> i & 1 && write(order_calls[i][1], &what, 1) != 1)
			die("process %d", i);
	for (int i = 0; i < order_players; i++) {
		struct pollfd p = { order_answers[i][0], POLLIN, 0 };

		if (mask >> i & 1 && (poll(&p, 1, 60000) != 1 || read(order_answers[i][0], &what, 1) != 1))
			die("process %d has ended, or hangs, in step %d", i, play_of->at + 1);
	}
}

void order_start(int nr)
{
	play_of = mmap(NULL, sizeof(*play_of), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (play_of == MAP_FAILED)
		die("mmap");
	order_players = nr;
	for (int i = 0; i < nr; i++) {
		if (pipe2(order_calls[i], O_CLOEXEC) || pipe2(order_answers[i], O_CLOEXEC))
			die("pipe");
		start_child(order_player, &i);
	}
}

/* ---- one history ---- */

static void order_model(const struct step *s)
{
	uint32_t end = s->op == OP_WRITE ? s->off + s->len : s->off;

	if (s->op != OP_WRITE && s->op != OP_CUT)
		return;
	if (end > play_of->size)
		memset(play_of->model + play_of->size, 0, end - play_of->size);
	if (s->op == OP_WRITE)
		order_fill(play_of->model + s->off, s, play_of->at);
	if (s->op == OP_CUT || end > play_of->size)
		play_of->size = end;
}

static int order_complaint(void)
{
	for (int i = 0; i < ORDER_PLAYERS + 2; i++)
		if (*play_of->said[i])
			return i;
	return -1;
}

static void order_look_anew(int as)
{
	struct lfile l = lopen(play_of->name, O_RDONLY);

	order_look_whole(&l, play_of->said[as]);
	lclose(&l);
}

/*
 * Returns the process that finds the file wrong; ORDER_NEW: one that opens it at the end; ORDER_CLOSED: one
 * that opens it when all have closed it; -1: none does. *@step: after which step, *@text: what it says.
 */
static int order_play(const struct history *h, int *step, char *text)
{
	unsigned all = (1u << h->nr_players) - 1;
	static unsigned nr;
	int who;

	play_of->h = *h;
	play_of->size = 0;
	memset(play_of->said, 0, sizeof(play_of->said));
	snprintf(play_of->name, sizeof(play_of->name), "h%u", nr++);
	play_of->at = 0;
	for (int i = 0; i < h->nr_players; i++)
		order_call(1u << i, 'o');
	for (int i = 0; i < h->nr && order_complaint() < 0; i++) {
		play_of->at = i;
		order_call(1u << h->step[i].who, 's');
		order_model(&h->step[i]);
		if (order_complaint() < 0)
			order_call(h->step[i].looks, 'l');
	}
	if (order_complaint() < 0)
		order_call(all, 'w');
	order_look_anew(ORDER_NEW);
	order_call(all, 'c');
	order_look_anew(ORDER_CLOSED);
	if (lunlink(play_of->name))
		die("unlink %s", play_of->name);
	who = order_complaint();
	*step = play_of->at;
	if (who >= 0)
		snprintf(text, ORDER_TEXT, "%.150s%s", play_of->said[who],
			 who < ORDER_NEW && !*play_of->said[ORDER_NEW] ? "; a new open reads it right" : "");
	return who;
}

/* ---- what fails ---- */

static bool order_fails(const struct history *h)
{
	char text[ORDER_TEXT];
	int step;

	for (int i = 0; i < 3; i++) /* what the clock has a part in may not fail each time */
		if (h->nr > 0 && order_play(h, &step, text) >= 0)
			return true;
	return false;
}

static void order_without(struct history *h, int step)
{
	memmove(&h->step[step], &h->step[step + 1], (size_t)(h->nr - step - 1) * sizeof(h->step[0]));
	h->nr--;
}

/* Fewer steps, fewer looks, shorter writes, as long as it fails. */
static void order_shorten(struct history *h)
{
	for (int i = h->nr - 1; i >= 0; i--) {
		struct history less = *h;

		order_without(&less, i);
		if (order_fails(&less))
			*h = less;
	}
	for (int i = 0; i < h->nr; i++) {
		struct history less = *h;

		for (int p = 0; p < h->nr_players; p++) {
			less = *h;
			less.step[i].looks &= (uint8_t)~(1u << p);
			if (less.step[i].looks != h->step[i].looks && order_fails(&less))
				*h = less;
		}
		for (less = *h; less.step[i].op == OP_WRITE && less.step[i].len > 1; *h = less) {
			less.step[i].len /= 2;
			if (!order_fails(&less))
				break;
		}
	}
}

static const char *order_name(int who)
{
	static const char *const names[] = { "A", "B", "C", "D", "a new open", "an open after all closes" };

	return names[who];
}

static void order_print(const struct history *h)
{
	char text[ORDER_TEXT] = "";
	int last, who = -1;

	for (int i = 0; i < 20 && who < 0; i++)
		who = order_play(h, &last, text);
	for (int i = 0; i < h->nr; i++) {
		const struct step *s = &h->step[i];

		fprintf(stderr, "%4d  %s: ", i + 1, order_name(s->who));
		switch (s->op) {
		case OP_WRITE: fprintf(stderr, "pwrite(fd, bytes, %u, %u)", s->len, s->off); break;
		case OP_CUT: fprintf(stderr, "ftruncate(fd, %u)", s->off); break;
		case OP_RELEASE: fprintf(stderr, "release"); break;
		case OP_REOPEN: fprintf(stderr, "close, open"); break;
		case OP_PAUSE: fprintf(stderr, "usleep(%u)", s->len * 1000); break;
		}
		for (int p = 0; p < h->nr_players; p++)
			if (s->looks >> p & 1 && s->looks_whole)
				fprintf(stderr, "; %s reads all", order_name(p));
			else if (s->looks >> p & 1)
				fprintf(stderr, "; %s: pread(%u, %u)", order_name(p), s->look_len,
					s->look_off);
		fprintf(stderr, "\n");
	}
	if (who >= 0)
		fprintf(stderr, "      after step %d: %s: %s\n", last + 1, order_name(who), text);
	else
		fprintf(stderr, "      which has not failed again\n");
}

void order_try(struct order_tally *t, const struct history *h)
{
	char text[ORDER_TEXT];
	int step, who = order_play(h, &step, text);

	t->nr++;
	if (who < 0)
		return;
	t->by[who]++;
	t->stale += who < ORDER_NEW && !*play_of->said[ORDER_NEW];
	if (t->failed++ && t->shortest.nr <= step)
		return;
	t->shortest = *h;
	t->shortest.nr = step + 1;
}

bool order_all_well(struct order_tally *t)
{
	if (!t->failed)
		return true;
	fprintf(stderr, "%u of %u histories fail (found by", t->failed, t->nr);
	for (int i = 0; i < ORDER_PLAYERS + 2; i++)
		if (t->by[i])
			fprintf(stderr, " %s: %u", order_name(i), t->by[i]);
	fprintf(stderr, "; %u not by a new open); a short one:\n", t->stale);
	order_shorten(&t->shortest);
	order_print(&t->shortest);
	return false;
}
