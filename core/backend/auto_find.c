/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading variables and mounts, and asking the file systems.
 */
#include "core/backend/auto_find.h"

#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/memroom.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MOUNTS_MAX 512
#define TEXT_MAX ((size_t)1 << 20)

/*
 * Directories of a job on its node: of Slurm at many sites, of NCI's PBS, of Fujitsu's PJM, of ABCI's Grid
 * Engine, of IBM's burst buffer under LSF, of Swedish sites, of CSC and others; PBS, Grid Engine and LSF set
 * TMPDIR, Flux its own and TMPDIR.
 */
static const char *const VARIABLES[] = {
	"SLURM_TMPDIR", "PBS_JOBFS", "PJM_LOCALTMP", "SGE_LOCALDIR", "BBPATH",		"SNIC_TMP",
	"LOCAL_SCRATCH", "LOCALSCRATCH", "LSCRATCH", "JOBFS",	     "FLUX_JOB_TMPDIR", "TMPDIR",
};

static const char *const JOBS[] = {
	"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PJM_JOBID", "COBALT_JOBID", "JOB_ID",
};

/* Mounts of disks on which nobody looks for logs of a job. */
static const char *const NEVER[] = { "/", "/home", "/boot", "/usr", "/opt", "/etc" };

/* ---- mounts ---- */

struct mount {
	char *point, *fs, *source; /* in the text */
	bool read_only;
};

struct mounts {
	char *text;
	struct mount v[MOUNTS_MAX];
	int nr;
};

/* In place: "\040" is a blank. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* The next word of the line *@p, which ends there. */
static char *word(char **p)
{
	char *w = *p, *end = w + strcspn(w, " ");

	*p = *end ? end + 1 : end;
	*end = '\0';
	return w;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE OPTIONS" */
static void take_mount(struct mounts *ms, char *line)
{
	struct mount m = { .point = NULL };
	char *options, *rest = strstr(line, " - ");

	if (!rest || ms->nr == MOUNTS_MAX)
		return;
	*rest = '\0';
	rest += 3;
	for (int i = 0; i < 4; i++)
		word(&line);
	m.point = word(&line);
	options = word(&line);
	m.fs = word(&rest);
	m.source = word(&rest);
	m.read_only = !strncmp(options, "ro", 2) || !strncmp(rest, "ro", 2);
	unescape(m.point);
	unescape(m.source);
	if (*m.point == '/')
		ms->v[ms->nr++] = m;
}

static int read_mounts(struct mounts *ms, const char *root)
{
	char path[PATH_MAX], *next;
	size_t len = 0;
	ssize_t n = 1;
	int fd;

	ms->nr = 0;
	ms->text = mem_alloc(TEXT_MAX);
	if (!ms->text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	fd = io_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && len + 1 < TEXT_MAX) {
		n = io_read(fd, ms->text + len, TEXT_MAX - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	io_close(fd);
	ms->text[len] = '\0';
	for (char *line = ms->text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		take_mount(ms, line);
	}
	return 0;
}

/* The mount that the path leads to by its text: the last of the longest. */
static const struct mount *mount_of(const struct mounts *ms, const char *path)
{
	const struct mount *best = NULL;
	size_t best_len = 0;

	for (int i = 0; i < ms->nr; i++) {
		size_t len = strcmp(ms->v[i].point, "/") ? strlen(ms->v[i].point) : 0;

		if (strncmp(path, ms->v[i].point, len) || (path[len] != '/' && path[len]) || len < best_len)
			continue;
		best = &ms->v[i];
		best_len = len;
	}
	return best;
}

/* ---- candidates ---- */

struct finding {
	struct auto_found *f;
	struct mounts mounts;
	dev_t home; /* 0: of no backend */
};

static bool has_dir(const struct auto_found *f, const char *dir)
{
	for (int i = 0; i < f->nr; i++)
		if (!strcmp(f->v[i].dir, dir))
			return true;
	return false;
}

static bool is_writable(const char *dir) { return !sys.euidaccess(dir, W_OK | X_OK); }

/* Whether nobody else can remove what this user puts there. */
static bool keeps(const struct stat *st)
{
	return (st->st_mode & S_ISVTX && st->st_mode & S_IWOTH) ||
	       (geteuid() && st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH)));
}

static void describe(struct auto_candidate *c, const struct mount *m)
{
	snprintf(c->fs, sizeof(c->fs), "%s", m->fs);
	snprintf(c->source, sizeof(c->source), "%s", m->source);
	c->is_root = !strcmp(m->point, "/");
	c->read_only = m->read_only;
}

/* Ask the file system of this node. */
static void ask(const struct finding *g, struct auto_candidate *c)
{
	struct statvfs fs;
	struct stat st;

	if (sys.stat(c->dir, &st) || !S_ISDIR(st.st_mode) || sys.statvfs(c->dir, &fs))
		return;
	c->exists = true;
	c->writable = is_writable(c->dir);
	c->read_only |= fs.f_flag & ST_RDONLY;
	c->may_lose = !*c->from && !keeps(&st);
	c->is_home = g->home && st.st_dev == g->home;
	c->size = (uint64_t)fs.f_blocks * fs.f_frsize;
	c->free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* Names are canonical, so that one directory counts once. What is elsewhere is not touched. */
static void add(struct finding *g, const char *dir, const char *from)
{
	struct auto_found *f = g->f;
	struct auto_candidate c = { .exists = false };
	const struct mount *m;
	char real[PATH_MAX];

	if (f->nr == AUTO_CANDIDATES_MAX || option_normalise(dir, real))
		return;
	m = mount_of(&g->mounts, real);
	if (m && auto_medium(m->fs, m->source) != AUTO_OTHER && sys.realpath(dir, real))
		m = mount_of(&g->mounts, real);
	if (!m || strlen(real) >= sizeof(c.dir) || has_dir(f, real) || !strcmp(real, "/"))
		return;
	snprintf(c.dir, sizeof(c.dir), "%.*s", CONFIG_NEAR_MAX, real);
	snprintf(c.from, sizeof(c.from), "%s", from);
	describe(&c, m);
	if (auto_medium(c.fs, c.source) != AUTO_OTHER)
		ask(g, &c);
	f->v[f->nr++] = c;
}

const char *auto_job(void)
{
	const char *value;

	for (size_t i = 0; i < ARRAY_SIZE(JOBS); i++) {
		value = secure_getenv(JOBS[i]);
		if (value && *value)
			return value;
	}
	return NULL;
}

/* The directory of a mounted disk in which this user may have something: itself, or one of a few names. */
static void add_mount(struct finding *g, const struct mount *m)
{
	const char *user = secure_getenv("USER"), *id = auto_job();
	const char *names[] = { "", id, user, "scratch", "tmp" };
	char dir[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!names[i] || strchr(names[i], '/') || *names[i] == '.' ||
		    snprintf(dir, sizeof(dir), "%s%s%s", m->point, *names[i] ? "/" : "", names[i]) >=
			    (int)sizeof(dir))
			continue;
		if (sys.stat(dir, &st) || !S_ISDIR(st.st_mode) || !is_writable(dir) || !keeps(&st))
			continue;
		add(g, dir, "");
		return;
	}
	add(g, m->point, "");
}

static bool is_never(const char *point)
{
	for (size_t i = 0; i < ARRAY_SIZE(NEVER); i++) {
		size_t len = strlen(NEVER[i]);

		if (!strcmp(point, NEVER[i]) ||
		    (len > 1 && !strncmp(point, NEVER[i], len) && point[len] == '/'))
			return true;
	}
	return false;
}

/* A directory that is mounted as well, such as a file that a container got, is none. */
static bool is_dir(const char *path)
{
	struct stat st;

	return !sys.stat(path, &st) && S_ISDIR(st.st_mode);
}

static void add_all(struct finding *g)
{
	for (size_t i = 0; i < ARRAY_SIZE(VARIABLES); i++) {
		const char *dir = secure_getenv(VARIABLES[i]);

		if (dir && *dir == '/')
			add(g, dir, VARIABLES[i]);
	}
	add(g, "/tmp", "");
	add(g, "/var/tmp", "");
	for (int i = 0; i < g->mounts.nr; i++) {
		const struct mount *m = &g->mounts.v[i];

		if (auto_medium(m->fs, m->source) == AUTO_DISK && !is_never(m->point) &&
		    mount_of(&g->mounts, m->point) == m && is_dir(m->point))
			add_mount(g, m);
	}
	add(g, AUTO_MEMORY_DIR, "");
}

int auto_find(struct auto_found *f, const char *backend, const char *root)
{
	struct finding *g = mem_zalloc(sizeof(*g));
	struct stat st;
	int ret;

	f->nr = 0;
	f->taken = -1;
	if (!g)
		return -ENOMEM;
	g->f = f;
	if (backend && !sys.stat(backend, &st))
		g->home = st.st_dev;
	ret = read_mounts(&g->mounts, root);
	if (!ret) {
		add_all(g);
		f->taken = auto_choose(f->v, f->nr, memroom(root));
	}
	mem_free(g->mounts.text);
	mem_free(g);
	return ret;
}
