/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words become steps; two processes carry them out, the second when a pipe asks it to.
 */
#include "test/lib/power_steps.h"

struct step power_steps[4000];
int nr_power_steps;
const char *power_options = "{small=0}";

static char near_link[64], near_options[200];

void power_with_near(const char *options)
{
	snprintf(near_link, sizeof(near_link), "/dev/shm/plfs-test-near.%d", (int)getpid());
	snprintf(near_options, sizeof(near_options), "{small=0,near=%s%s}", near_link, options);
	power_options = near_options;
}

void power_lead_near(const char *tree)
{
	char path[PATH_MAX];

	if (!*near_link)
		return;
	unlink(near_link);
	snprintf(path, sizeof(path), "%s/near", tree ? tree : "");
	if (tree && ((mkdir(path, 0755) && errno != EEXIST) || symlink(path, near_link)))
		die("%s", near_link);
}

/* ---- steps in words ---- */

static const struct {
	const char *word;
	int nr_numbers; /* that follow: WRITE and APPEND have OFF LEN, TRUNCATE has LEN */
} ACTIONS[NR_ACTIONS] = {
	[OPEN] = { "open", 0 },         [OPEN_TRUNC] = { "rewrite", 0 }, [WRITE] = { "write", 2 },
	[APPEND] = { "append", 2 },     [READ] = { "read", 0 },          [TRUNCATE] = { "truncate", 1 },
	[SYNC] = { "sync", 0 },         [CLOSE] = { "close", 0 },        [SYNC_DIR] = { "dir", 0 },
	[RENAME] = { "rename", 0 },     [UNLINK] = { "unlink", 0 },      [FLATTEN] = { "flatten", 0 },
	[MOVE] = { "move", 0 },         [COMPACT] = { "compact", 0 },   [DRAIN] = { "drain", 0 },
};

static void add(struct step like, long off, long len)
{
	if (nr_power_steps == ARRAY_SIZE(power_steps))
		die("too many steps");
	like.off = off;
	like.len = len;
	power_steps[nr_power_steps++] = like;
}

static long number(char **at)
{
	const char *word = strsep(at, " ");
	char *end = NULL;
	long n = word ? strtol(word, &end, 10) : 0;

	errno = 0;
	if (!word || end == word || *end)
		die("'%s' is no number", word);
	return n;
}

/*
 * "each NR OFF LEN APART": writes that are so far apart; "irregular NR OFF": of BLOCK bytes, without an
 * order.
 */
static void add_many(struct step like, bool irregular, char **at)
{
	long nr = number(at), off = number(at);
	long len = irregular ? BLOCK : number(at), apart = irregular ? 2 * BLOCK : number(at);

	like.action = WRITE;
	for (long i = 0; i < nr; i++)
		add(like, off + (irregular ? i * 7919L % nr : i) * apart, len);
}

__attribute__((format(printf, 1, 2))) void add_steps(const char *text, ...)
{
	char buf[1024], *at = buf, *word;
	struct step s = { 0 };
	va_list args;

	va_start(args, text);
	vsnprintf(buf, sizeof(buf), text, args);
	va_end(args);
	while ((word = strsep(&at, " "))) {
		if (!strcmp(word, "A:") || !strcmp(word, "B:")) {
			s.proc = *word == 'B';
		} else if (!strcmp(word, "f:") || !strcmp(word, "t:")) {
			s.file = *word == 't';
		} else if (!strcmp(word, "each") || !strcmp(word, "irregular")) {
			add_many(s, *word == 'i', &at);
		} else if (*word) {
			for (s.action = 0; s.action < NR_ACTIONS && strcmp(word, ACTIONS[s.action].word);)
				s.action++;
			errno = 0;
			if (s.action == NR_ACTIONS)
				die("what is '%s'?", word);
			s.off = ACTIONS[s.action].nr_numbers == 2 ? number(&at) : 0;
			add(s, s.off, ACTIONS[s.action].nr_numbers ? number(&at) : 0);
		}
	}
}

/* ---- steps carried out ---- */

static void sync_root(void)
{
	int fd = open(scratch, O_RDONLY | O_DIRECTORY);

	if (fd < 0 || sys.fsync(fd))
		die("fsync %s", scratch);
	close(fd);
}

static void perform(struct lfile *l, int i)
{
	static char buf[SIZE_MAX_TESTED];
	const struct step *s = &power_steps[i];
	const char *name = s->file ? "t" : "f";
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_compact k = { .dry = false };
	struct plfs_drain drain = { .closed_only = false };
	char path[PATH_MAX];
	ssize_t n = 0;
	off_t end;
	int ret = 0;

	power_event(2 * i);
	switch (s->action) {
	case OPEN:
		l[s->file] = lopen(name, O_RDWR | O_CREAT);
		break;
	case OPEN_TRUNC:
		l[s->file] = lopen(name, O_RDWR | O_CREAT | O_TRUNC);
		break;
	case WRITE:
		n = lfill(&l[s->file], s->off, (size_t)s->len, (unsigned)i + 1) - s->len;
		break;
	case APPEND:
		pattern_fill(buf, (size_t)s->len, (uint64_t)s->off, (unsigned)i + 1);
		n = lappend(&l[s->file], buf, (size_t)s->len, &end) - s->len;
		break;
	case READ:
		n = plfs_pread(l[s->file].f, buf, sizeof(buf), 0) < 0;
		break;
	case TRUNCATE:
		ret = plfs_truncate(l[s->file].f, s->len);
		break;
	case SYNC:
		ret = plfs_sync(l[s->file].f);
		break;
	case CLOSE:
		ret = lclose(&l[s->file]);
		break;
	case SYNC_DIR:
		sync_root();
		break;
	case RENAME:
		ret = lrename("t", "f");
		break;
	case UNLINK:
		ret = lunlink("f");
		break;
	case FLATTEN:
		lpath("f", path);
		ret = plfs_flatten(AT_FDCWD, path, NULL);
		break;
	case COMPACT:
		lpath("f", path);
		ret = plfs_compact(path, &k, &watch);
		ret = ret < 0 ? ret : 0;
		break;
	case DRAIN:
		ret = plfs_drain_file(lpath("f", path), AT_FDCWD, path, &drain);
		ret = drain.nr_lost ? -EIO : ret;
		break;
	case MOVE:
		ret = plfs_in_body(l[s->file].f, PLFS_MAP_WRITE) == 1 ? 0 : -EIO;
		break;
	default:
		break;
	}
	errno = -ret;
	if (ret || n)
		die("step %d failed", i);
	power_event(2 * i + 1);
}

/* The second process: it carries out each step whose number it reads. */
static void serve(int from, int to)
{
	struct lfile l[2] = { { .fd = -1 }, { .fd = -1 } };
	int i;

	while (read(from, &i, sizeof(i)) == sizeof(i)) {
		perform(l, i);
		if (write(to, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
	_exit(0);
}

void power_live_through(bool ordered)
{
	struct lfile l[2] = { { .fd = -1 }, { .fd = -1 } };
	int there[2], back[2], code;
	char path[PATH_MAX];
	pid_t pid;

	scratch_map(power_options);
	power_lead_near(scratch);
	lpath("f", path)->store.keeps_order = ordered;
	be_single_threaded();
	power_record();
	if (pipe(there) || pipe(back))
		die("pipe");
	pid = fork_child();
	if (!pid) {
		close(there[1]);
		serve(there[0], back[1]);
	}
	for (int i = 0; i < nr_power_steps; i++) {
		if (!power_steps[i].proc)
			perform(l, i);
		else if (write(there[1], &i, sizeof(i)) != sizeof(i) ||
			 read(back[0], &code, sizeof(code)) != sizeof(code))
			die("the other process is gone in step %d", i);
	}
	close(there[1]);
	if (wait_child(pid))
		die("the other process failed");
	scratch_remove();
	_exit(0);
}
