/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs advise: what a measured job, or a file as it is stored, suggests, each with the measured reason; and
 * hints for the next job.
 */
#include "advice.h"
#include "options.h"
#include "predict.h"
#include "stats_read.h"

#include <stdlib.h>

#define SERIES_MIN 4 /* files of one process each, before plain ones are suggested */
#define PIECE_SMALL (1 << 20)
#define SYNCS_MANY 100
#define CALLS_MANY 1000
#define CALL_SMALL 512

/* Files whose names differ in numbers alone. */
struct series {
	UT_hash_handle hh;
	char name[NAME_MAX + 1]; /* with "*" */
	unsigned files, logs;
	unsigned shared;	/* files that several processes wrote */
	unsigned hosts;		/* of one of the files, the most */
	double bytes, small;	/* small: shared files in small or strided pieces */
	struct stats_line last; /* the file that was written last */
	unsigned last_writers;
};

static struct series *all;
static FILE *hints;
static unsigned nr_advice;

static void print_advice(void *arg, const char *about, const char *what, const char *why)
{
	(void)arg;
	nr_advice++;
	if (!opt.json) {
		tool_print("%s: %s", about, what);
		tool_print("    %s", why);
		return;
	}
	printf("{\"about\": ");
	tool_print_json(about);
	printf(", \"advice\": ");
	tool_print_json(what);
	printf(", \"reason\": ");
	tool_print_json(why);
	printf("}\n");
}

static void advise(const char *about, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void advise(const char *about, const char *what, const char *fmt, ...)
{
	char why[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	print_advice(NULL, about, what, why);
}

/* A name that needs no care in a pattern, or in a line of hints. */
static bool is_simple(const char *name)
{
	return *name &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+*")] ==
		       '\0';
}

static void keep(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void keep(const char *fmt, ...)
{
	va_list args;

	if (!hints)
		return;
	va_start(args, fmt);
	vfprintf(hints, fmt, args);
	va_end(args);
}

/* ---- a stats file ---- */

static struct series *series_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[NAME_MAX + 1];
	struct series *s;

	predict_series(slash ? slash + 1 : path, name);
	HASH_FIND_STR(all, name, s);
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s) {
		tool_error("%s", strerror(ENOMEM));
		exit(TOOL_FAILED);
	}
	memcpy(s->name, name, sizeof(name));
	HASH_ADD_STR(all, name, s);
	return s;
}

static double typical(const struct stats_way *w)
{
	double most = 0, len = 0;

	for (int i = 0; i < STATS_COMMON; i++)
		if (w->common[i].calls > most) {
			most = w->common[i].calls;
			len = w->common[i].len;
		}
	return len;
}

static bool is_in_pieces(const struct stats_line *l)
{
	const struct stats_way *w = &l->write;

	return w->strided + w->random > w->sequential || typical(w) < PIECE_SMALL || (long)typical(w) % 4096;
}

static void add_file(const struct stats_file *f)
{
	const struct stats_line *l = &f->sum;
	struct series *s;

	if (!*l->file || !l->write.bytes)
		return;
	s = series_of(l->file);
	s->files++;
	s->logs += !strcmp(l->stored, "logs");
	s->shared += f->writers > 1;
	s->hosts = f->hosts > s->hosts ? f->hosts : s->hosts;
	s->small += f->writers > 1 && is_in_pieces(l);
	s->bytes += l->write.bytes;
	if (l->write.last >= s->last.write.last) {
		s->last = *l;
		s->last_writers = f->writers;
	}
}

static void advise_series(const struct series *s)
{
	char what[NAME_MAX + 64], size[TOOL_SIZE_LEN], piece[TOOL_SIZE_LEN];
	const struct stats_line *l = &s->last;

	tool_size((uint64_t)s->bytes, size);
	if (s->logs == s->files && !s->shared && s->files >= SERIES_MIN && is_simple(s->name)) {
		snprintf(what, sizeof(what), "exclude=%s", s->name);
		advise(s->name, what,
		       "one process wrote each of the %u files, %s in all: plain files do as well, and need no library to be read",
		       s->files, size);
		keep("exclude=%s\n", s->name);
	}
	if (!s->logs && s->small) {
		snprintf(what, sizeof(what), "plfs run -m DIRECTORY, with the directory of %s", s->name);
		advise(s->name, what,
		       "%u processes wrote one file together, %s in pieces of mostly %s, in %.3f s of calls: with libplfs each appends to a log of its own",
		       s->last_writers, size, tool_size((uint64_t)typical(&l->write), piece),
		       l->write.seconds);
	}
	if (s->logs && s->hosts > ADVICE_HOSTS_MANY) {
		snprintf(what, sizeof(what), "hostdirs=%u", s->hosts > 4096 ? 4096 : s->hosts);
		advise(s->name, what,
		       "%u hosts make their logs in the directories of one container, by default 32",
		       s->hosts);
		keep("%s\n", what);
	}
	if (is_simple(s->name) && l->end)
		keep("expect %s %.0f %.3f\n", s->name, l->end, l->write.last - l->write.first);
}

static void advise_file(const struct stats_file *f)
{
	const struct stats_line *l = &f->sum;
	bool logs = !strcmp(l->stored, "logs");
	char size[TOOL_SIZE_LEN], what[64 + PATH_MAX];

	if (!*l->file)
		return;
	if (logs && f->writers > 1 && f->readers && l->read.first && l->read.first < l->write.last &&
	    l->write.bytes > 1.01 * l->end)
		advise(l->file, "PLFS_CONSISTENCY=posix",
		       "%u processes wrote %.0f %% more bytes than the file has, and %u read it meanwhile: what they see of each other depends on locks and syncs",
		       f->writers, 100 * (l->write.bytes / l->end - 1), f->readers);
	else if (logs && l->write.bytes > 2 * l->end) {
		snprintf(what, sizeof(what), "plfs compact %s", l->file);
		advise(l->file, what,
		       "%s were written to a file of %.0f bytes: the rest is overwritten, and takes space",
		       tool_size((uint64_t)l->write.bytes, size), l->end);
	}
	if (logs && l->read.bytes > 2 * l->end && l->read.random > (l->read.sequential + l->read.strided)) {
		snprintf(what, sizeof(what), "plfs flatten %s", l->file);
		advise(l->file, what,
		       "%u processes read %s of it, in random places, more than the file has: a plain file is faster to read so",
		       f->readers, tool_size((uint64_t)l->read.bytes, size));
	}
	if (l->syncs > SYNCS_MANY && l->syncs * 10 > l->write.calls)
		advise(l->file, "fewer fsync() calls in the program",
		       "%.0f syncs for %.0f writes took %.3f s; one at the end keeps the same bytes",
		       l->syncs, l->write.calls, l->sync_seconds);
	if (l->write.calls > CALLS_MANY && l->write.bytes < CALL_SMALL * l->write.calls)
		advise(l->file, "larger writes, or a buffer (stdio, collective buffering)",
		       "%.0f writes had %.0f bytes in the mean, and took %.3f s", l->write.calls,
		       l->write.bytes / l->write.calls, l->write.seconds);
	if (f->killed && logs)
		advise(l->file, "plfs check, before it is relied on",
		       "%u of its processes were killed; what they had written can be read, but may not be all",
		       f->killed);
}

static bool advise_stats(const char *path)
{
	struct stats_file *f, *tmp;
	struct series *s, *next;
	struct stats st;

	if (!stats_read(&st, path))
		return false;
	HASH_ITER(hh, st.files, f, tmp)
	add_file(f);
	HASH_ITER(hh, all, s, next)
	advise_series(s);
	HASH_ITER(hh, st.files, f, tmp)
	advise_file(f);
	HASH_ITER(hh, all, s, next)
	{
		HASH_DEL(all, s);
		free(s);
	}
	stats_release(&st);
	return true;
}

/* ---- a file as it is ---- */

static bool advise_logical(const struct target *t)
{
	struct plfs_info info;
	uint64_t waste = 0;
	int ret = plfs_get_info(t->file, &info);

	if (ret) {
		tool_error("%s: %s", t->name, strerror(-ret));
		return false;
	}
	if (plfs_get_reclaimable(t->file, &info, &waste))
		waste = 0;
	advice_of_file(t, &info, waste, print_advice, NULL);
	return true;
}

/* ---- the verb ---- */

static bool is_stats(const char *name)
{
	FILE *in = fopen(name, "re");
	int c = in ? fgetc(in) : EOF;
	char path[PATH_MAX];

	if (in)
		fclose(in);
	snprintf(path, sizeof(path), "%s.parts", name);
	return c == '{' || (c == EOF && !access(path, F_OK));
}

static bool advise_one(const char *name)
{
	struct target t;
	bool ok;

	if (is_stats(name))
		return advise_stats(name);
	if (!target_open_unsized(&t, name))
		return false;
	if (t.file)
		ok = advise_logical(&t);
	else
		tool_error("%s: neither a logical file nor a stats file: plfs run --stats makes one", name),
			ok = false;
	target_close(&t);
	return ok;
}

/* Written beside it and renamed over it. */
static bool finish_hints(const char *temp, const char *path)
{
	bool ok = !fclose(hints) && !rename(temp, path);

	if (!ok)
		tool_error("%s: %s", path, strerror(errno));
	if (!ok)
		unlink(temp);
	return ok;
}

static int run(const struct verb *v, int argc, char **argv)
{
	char temp[PATH_MAX + 16];
	const char *path = NULL;
	int rc = TOOL_OK;

	while (options_next(v, argc, argv) != -1)
		path = optarg;
	if (optind == argc)
		return tool_misuse(v->name, "no file given");
	target_setup(opt.map, argv + optind, argc - optind);
	if (path) {
		snprintf(temp, sizeof(temp), "%s.tmp%d", path, (int)getpid());
		hints = fopen(temp, "we");
		if (!hints) {
			tool_error("%s: %s", path, strerror(errno));
			return TOOL_FAILED;
		}
		keep("# For PLFS_HINTS, by plfs advise " PLFS_VERSION ".\n");
	}
	for (int i = optind; i < argc; i++)
		if (!advise_one(argv[i]))
			rc = TOOL_FAILED;
	if (hints && !finish_hints(temp, path))
		rc = TOOL_FAILED;
	if (!nr_advice && rc == TOOL_OK && !opt.json && !opt.quiet)
		tool_print("nothing to advise: it is stored as it should be");
	return tool_finish(rc);
}

const struct verb verb_advise = {
	.name = "advise",
	.run = run,
	.what = "say what a measured job suggests",
	.arguments = "FILE...",
	.about =
		"Say what each FILE suggests, with the measured reason: a stats file (plfs run --stats), for the files\n"
		"of the job; or a logical file, for itself.\n",
	.options =
		(const struct verb_option[]){
			{ OPT_KEEP, "keep", "OUT", "write hints for the next job there, for PLFS_HINTS" },
			{ 0 },
		},
};
