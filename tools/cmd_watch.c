/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs watch: who writes which file, how fast, and who has stopped. It looks again and again at what writers
 * have published, and remembers when each one moved.
 */
#include "options.h"
#include "predict.h"
#include "tool.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <uthash.h>

#define STALLED_S 30
#define ONCE_S 2
#define SHOWN_RANKS 16 /* lines of ranks that do not move, a file */

/* A writer, by file, host, process and log. */
struct rank {
	UT_hash_handle hh;
	char *key;
	struct plfs_writer_now now;
	uint64_t bytes_then, then_ns; /* when it was seen first */
	uint64_t bytes_last, last_ns; /* at the look before */
	uint64_t moved_ns;	      /* when it was seen to have moved */
	uint64_t look;		      /* the last in which it was there */
};

struct watched {
	UT_hash_handle hh;
	char *path;
	uint64_t size, first_ns;
	unsigned writers, hosts, gone, unseen, stopped, quiet;
	uint64_t written;	    /* by all its writers, so far */
	uint64_t gained, gained_ns; /* since they were first seen, the time for it */
	double now_rate;
	uint64_t look;
	uint64_t expected; /* bytes of the file before it of that name; 0: not known */
	double expected_s;
};

static struct rank *ranks;
static struct watched *files;
static uint64_t look_nr, now_ns, last_look_ns, limit_ns = STALLED_S * 1000000000ULL;
static volatile sig_atomic_t ended;

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static _Noreturn void no_memory(void)
{
	tool_error("%s", strerror(ENOMEM));
	exit(TOOL_FAILED);
}

/* ---- looking ---- */

static struct watched *file_of(const char *path)
{
	struct watched *f;

	HASH_FIND_STR(files, path, f);
	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f || !(f->path = strdup(path)))
		no_memory();
	f->first_ns = now_ns;
	predict_file(path, &f->expected, &f->expected_s);
	HASH_ADD_KEYPTR(hh, files, f->path, strlen(f->path), f);
	return f;
}

static struct rank *rank_of(const char *path, const struct plfs_writer_now *w)
{
	char key[PATH_MAX + 128];
	struct rank *r;

	snprintf(key, sizeof(key), "%s\n%s %u %u", path, w->host, w->pid, w->seq);
	HASH_FIND_STR(ranks, key, r);
	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r || !(r->key = strdup(key)))
		no_memory();
	r->bytes_then = r->bytes_last = w->bytes;
	r->then_ns = r->last_ns = r->moved_ns = now_ns;
	HASH_ADD_KEYPTR(hh, ranks, r->key, strlen(r->key), r);
	return r;
}

static bool is_quiet(const struct rank *r)
{
	return now_ns - r->moved_ns >= limit_ns || r->now.state == PLFS_WRITER_STOPPED;
}

/* Whether it keeps others waiting, as far as can be seen. */
static bool is_stalled(const struct rank *r) { return is_quiet(r) && r->now.state != PLFS_WRITER_GONE; }

static void see_writer(struct watched *f, const char *path, const struct plfs_writer_now *w)
{
	struct rank *r = rank_of(path, w);

	r->now = *w;
	r->look = look_nr;
	if (w->bytes != r->bytes_last)
		r->moved_ns = now_ns;
	f->writers += w->state != PLFS_WRITER_GONE;
	f->gone += w->state == PLFS_WRITER_GONE;
	f->unseen += w->state == PLFS_WRITER_UNSEEN;
	f->stopped += w->state == PLFS_WRITER_STOPPED;
	f->quiet += is_stalled(r);
	f->written += w->bytes;
	f->gained += w->bytes > r->bytes_then ? w->bytes - r->bytes_then : 0;
	if (now_ns > last_look_ns && w->bytes > r->bytes_last)
		f->now_rate += (double)(w->bytes - r->bytes_last) * 1e9 / (double)(now_ns - r->last_ns);
	r->bytes_last = w->bytes;
	r->last_ns = now_ns;
}

/* Writers of a host stand together, mostly. */
static bool is_new_host(const struct plfs_now *now, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(now->writers[k].host, now->writers[i].host))
			return false;
	return true;
}

static void see_file(void *arg, const char *path, struct plfs_now *now)
{
	struct watched *f = file_of(path);
	struct stat st = now->st;

	(void)arg;
	f->writers = f->hosts = f->gone = f->unseen = f->stopped = f->quiet = 0;
	f->written = f->gained = 0;
	f->now_rate = 0;
	f->look = look_nr;
	f->gained_ns = now_ns - f->first_ns;
	f->size = plfs_fix_stat(&st, NULL) ? (uint64_t)st.st_size : 0;
	for (size_t i = 0; i < now->nr_writers; i++) {
		f->hosts += is_new_host(now, i);
		see_writer(f, path, &now->writers[i]);
	}
}

#define WALK_NS 3000000000 /* not more often */
#define WALK_SHARE 20	   /* of the time spent walking, at most one part in so many */

static bool is_walk_due(uint64_t walked_ns, uint64_t took_ns)
{
	return now_ns - walked_ns > WALK_NS && now_ns - walked_ns > WALK_SHARE * took_ns;
}

/* A file that was being written at the look before; it may be over, or gone. */
static void look_again(struct plfs_mount *m, const struct watched *f)
{
	struct plfs_now now;

	if (f->look + 1 == look_nr && plfs_look_now(m, AT_FDCWD, f->path, &now) > 0) {
		see_file(NULL, f->path, &now);
		plfs_now_release(&now);
	}
}

/*
 * A backend may have millions of files: it is walked now and then, and the files that were found looked at.
 */
static void look_below(struct plfs_mount *m, const char *path)
{
	static uint64_t walked_ns, walked_look, took_ns;
	struct watched *f, *tmp;

	if (walked_look && walked_look != look_nr && !is_walk_due(walked_ns, took_ns)) {
		HASH_ITER(hh, files, f, tmp)
		look_again(m, f);
		return;
	}
	plfs_look_below(m, path, see_file, NULL);
	walked_ns = now_ns;
	walked_look = look_nr;
	took_ns = clock_ns() - now_ns;
}

/* False: an error was printed. */
static bool look_at(const char *name)
{
	char path[PATH_MAX];
	struct plfs_mount *m;
	struct plfs_now now;
	struct stat st;
	int ret;

	if (!target_find(name, path, &m))
		return false;
	if (stat(path, &st)) {
		tool_error("%s: %s", name, strerror(errno));
		return false;
	}
	if (!m) {
		tool_error("%s: below no mapping, and no backend: there is nothing to watch", name);
		return false;
	}
	if (S_ISDIR(st.st_mode)) {
		look_below(m, path);
		return true;
	}
	ret = plfs_look_now(m, AT_FDCWD, path, &now);
	if (ret < 0)
		tool_error("%s: %s", name, strerror(-ret));
	if (ret > 0) {
		see_file(NULL, path, &now);
		plfs_now_release(&now);
	}
	return ret >= 0;
}

static bool look(char *const *names, int nr)
{
	bool ok = true;

	look_nr++;
	now_ns = clock_ns();
	for (int i = 0; i < nr; i++)
		ok &= look_at(names[i]);
	last_look_ns = now_ns;
	return ok;
}

/* ---- showing ---- */

static double mean_rate(const struct watched *f)
{
	return f->gained_ns ? (double)f->gained * 1e9 / (double)f->gained_ns : 0;
}

/* Seconds until the file is as long as the one before it; below 0: not known. */
static double seconds_left(const struct watched *f)
{
	double rate = mean_rate(f);

	return !f->expected || rate <= 0 ? -1 :
	       f->size >= f->expected	 ? 0 :
					   (double)(f->expected - f->size) / rate;
}

static const char *shown(const char *path, char *out) { return plfs_path_unmap(path, out) == 1 ? out : path; }

static void name_rank(const struct rank *r, char *out, size_t len)
{
	char rank[32] = "a process";

	if (r->now.rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d", r->now.rank);
	snprintf(out, len, "%s on %s, process %u%s%s", rank, r->now.host, r->now.pid,
		 *r->now.program ? ", " : "", r->now.program);
}

static const char *state_of(const struct rank *r)
{
	switch (r->now.state) {
	case PLFS_WRITER_STOPPED:
		return "stopped by a signal";
	case PLFS_WRITER_GONE:
		return "ended without closing the file";
	case PLFS_WRITER_UNSEEN:
		return "not seen to move from here";
	default:
		return "has not moved";
	}
}

static bool is_of(const struct rank *r, const struct watched *f)
{
	size_t len = strlen(f->path);

	return r->look == look_nr && !strncmp(r->key, f->path, len) && r->key[len] == '\n';
}

static void print_ranks(const struct watched *f)
{
	struct rank *r, *tmp;
	unsigned nr = 0;
	char name[200];

	HASH_ITER(hh, ranks, r, tmp)
	{
		if (!is_of(r, f) || (!is_stalled(r) && r->now.state != PLFS_WRITER_GONE))
			continue;
		if (nr++ >= SHOWN_RANKS)
			continue;
		name_rank(r, name, sizeof(name));
		tool_print("  ! %s: %s for %.0f s", name, state_of(r), (double)(now_ns - r->moved_ns) / 1e9);
	}
	if (nr > SHOWN_RANKS)
		tool_print("  ! and %u more", nr - SHOWN_RANKS);
}

static void print_file(const struct watched *f)
{
	char path[PATH_MAX], size[TOOL_SIZE_LEN], now[TOOL_SIZE_LEN], mean[TOOL_SIZE_LEN], left[80] = "";

	if (seconds_left(f) >= 0)
		snprintf(left, sizeof(left), "; %.0f %%, about %.0f s to go",
			 100 * (double)f->size / (double)f->expected, seconds_left(f));
	else if (f->expected)
		snprintf(left, sizeof(left), "; %s expected", tool_size(f->expected, now));
	tool_print("%s", shown(f->path, path));
	tool_print("  %u writers on %u hosts; %s so far; %s/s now, %s/s mean%s", f->writers, f->hosts,
		   tool_size(f->size > f->written ? f->size : f->written, size),
		   tool_size((uint64_t)f->now_rate, now), tool_size((uint64_t)mean_rate(f), mean), left);
	if (f->unseen)
		tool_print("  %u of them on other hosts: what they have not released is not seen from here",
			   f->unseen);
	print_ranks(f);
}

static void print_json_ranks(const struct watched *f)
{
	static const char *const states[] = { "runs", "stopped", "gone", "unseen" };
	struct rank *r, *tmp;
	bool first = true;

	printf(", \"ranks\": [");
	HASH_ITER(hh, ranks, r, tmp)
	{
		if (!is_of(r, f))
			continue;
		printf("%s{\"rank\": ", first ? "" : ", ");
		if (r->now.rank < 0)
			printf("null");
		else
			printf("%d", r->now.rank);
		printf(", \"host\": ");
		tool_print_json(r->now.host);
		printf(", \"pid\": %u, \"state\": \"%s\", \"bytes\": %llu, \"quiet_seconds\": %.1f, \"stalled\": %s}",
		       r->now.pid, states[r->now.state], (unsigned long long)r->now.bytes,
		       (double)(now_ns - r->moved_ns) / 1e9, is_stalled(r) ? "true" : "false");
		first = false;
	}
	printf("]");
}

static void print_json(const struct watched *f)
{
	char path[PATH_MAX];

	printf("{\"file\": ");
	tool_print_json(shown(f->path, path));
	printf(", \"size\": %llu, \"written\": %llu, \"writers\": %u, \"hosts\": %u, \"unseen\": %u, \"stopped\": %u"
	       ", \"gone\": %u, \"stalled\": %u, \"rate\": %.0f, \"mean_rate\": %.0f",
	       (unsigned long long)f->size, (unsigned long long)f->written, f->writers, f->hosts, f->unseen,
	       f->stopped, f->gone, f->quiet, f->now_rate, mean_rate(f));
	if (f->expected)
		printf(", \"expected\": %llu", (unsigned long long)f->expected);
	if (f->expected_s > 0)
		printf(", \"expected_seconds\": %.1f", f->expected_s);
	if (seconds_left(f) >= 0)
		printf(", \"seconds_left\": %.1f", seconds_left(f));
	print_json_ranks(f);
	printf("}\n");
}

/* Returns how many writers are stalled. */
static unsigned show(void)
{
	struct watched *f, *tmp;
	unsigned nr = 0, stalled = 0;

	HASH_ITER(hh, files, f, tmp)
	{
		if (f->look != look_nr || !f->writers)
			continue;
		nr++;
		stalled += f->quiet;
		if (opt.json)
			print_json(f);
		else
			print_file(f);
	}
	if (!nr && !opt.json && !opt.quiet)
		tool_print("nothing is being written");
	fflush(stdout);
	return stalled;
}

/* ---- the verb ---- */

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

/* A second, or the key "q". */
static void pause_s(double seconds)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	char c;

	if (poll(&in, terminal, (int)(seconds * 1000)) > 0 && read(STDIN_FILENO, &c, 1) >= 0)
		ended = 1; /* a line, with what terminals have by default */
}

static unsigned watch(char *const *names, int nr)
{
	bool terminal = isatty(STDOUT_FILENO) && !opt.json;
	unsigned stalled = 0;
	time_t t;

	while (!ended) {
		if (!look(names, nr))
			exit(tool_finish(TOOL_FAILED));
		if (terminal)
			printf("\033[H\033[J");
		if (!opt.json && !opt.quiet) {
			t = time(NULL);
			printf("plfs watch, %.8s; Enter ends it\n", ctime(&t) + 11);
		}
		stalled = show();
		pause_s(1);
	}
	return stalled;
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_signal };
	bool once = false;
	unsigned stalled;
	uint64_t nr;
	int c;

	while ((c = options_next(v, argc, argv)) != -1) {
		if (c == OPT_ONCE) {
			once = true;
		} else if (!tool_number(optarg, 1, 1000000, &nr)) {
			return tool_misuse(v->name, "\"%s\" is not a number of seconds", optarg);
		} else {
			limit_ns = nr * 1000000000;
		}
	}
	if (optind == argc)
		return tool_misuse(v->name, "no file or directory given");
	target_setup(opt.map, argv + optind, argc - optind);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	if (!once) {
		stalled = watch(argv + optind, argc - optind);
		return tool_finish(stalled ? TOOL_STALLED : TOOL_OK);
	}
	if (!look(argv + optind, argc - optind))
		return tool_finish(TOOL_FAILED);
	pause_s(limit_ns / 1e9 < ONCE_S ? (double)limit_ns / 1e9 : ONCE_S);
	if (!look(argv + optind, argc - optind))
		return tool_finish(TOOL_FAILED);
	return tool_finish(show() ? TOOL_STALLED : TOOL_OK);
}

const struct verb verb_watch = {
	.name = "watch",
	.run = run,
	.what = "show the files that are being written, and which ranks do not move",
	.arguments = "FILE|DIRECTORY...",
	.about =
		"Show each FILE that is being written, or each such file below a DIRECTORY: by how many ranks on which\n"
		"hosts, how far it is, how fast, and which ranks have not moved for a while, by name. It asks nothing\n"
		"of the writers.\n",
	.end = "Exit status: 0; 3 if a rank had not moved in the end; 1 if something cannot be read.\n",
	.options =
		(const struct verb_option[]){
			{ OPT_ONCE, "once", NULL, "look for two seconds, and show that" },
			{ OPT_STALLED, "stalled", "SECONDS",
			  "a rank that has not moved for so long is shown; default 30" },
			{ 0 },
		},
};
