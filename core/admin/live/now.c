/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who writes a file at this moment, and how much: from its live files and the lengths of its logs. Nothing is
 * changed, and no writer is asked anything.
 */
#include "core/plfs_admin.h"

#include "core/admin/walk/walk.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/nested.h"
#include "core/backend/stub.h"
#include "core/backend/stub_known.h"
#include "core/base/io.h"
#include "core/base/vec.h"
#include "core/dropping/datalog.h"
#include "core/dropping/live_read.h"
#include "core/observe/job.h"

#include <stdio.h>

struct looking {
	struct plfs_now *now;
	const struct container *c;
	size_t cap;
	int error;
};

/* ---- processes of this host ---- */

/* Read a file of /proc that says something of the process. Its length; 0: there is none. */
static size_t read_proc(uint32_t pid, const char *what, char *buf, size_t len)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, what);
	fd = io_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = io_pread_all(fd, buf, len - 1, 0);
	io_close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void ask_process(struct plfs_writer_now *w)
{
	static __thread char text[1 << 16]; /* an environment may be long */
	const char *state;
	size_t len;

	if (!read_proc(w->pid, "stat", text, sizeof(text))) {
		w->state = PLFS_WRITER_GONE;
		return;
	}
	state = strrchr(text, ')');
	if (state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't'))
		w->state = PLFS_WRITER_STOPPED;
	else if (state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X'))
		w->state = PLFS_WRITER_GONE;
	len = read_proc(w->pid, "comm", w->program, sizeof(w->program));
	if (len && w->program[len - 1] == '\n')
		w->program[len - 1] = '\0';
	len = read_proc(w->pid, "environ", text, sizeof(text));
	w->rank = job_rank_in(text, len);
}

/* ---- one live file ---- */

static void find_length(const struct looking *lk, const char *path, struct plfs_writer_now *w)
{
	char log[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct store *s = lk->c->store;
	struct stat st;

	name_log_of_live(path, log);
	container_path(lk->c, log, full);
	if (!s->ops->stat(s, full, &st) && datalog_len(&st) > w->bytes)
		w->bytes = datalog_len(&st);
}

static int look_at_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct looking *lk = arg;
	struct plfs_now *now = lk->now;
	struct plfs_writer_now *w;
	struct live_head head;
	size_t host_len;
	const char *host;
	bool elsewhere = false;
	int h;

	if (kind != DROPPING_LIVE)
		return 0;
	w = vec_room(now->writers, &lk->cap, now->nr_writers + 1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	now->writers = w;
	w += now->nr_writers;
	memset(w, 0, sizeof(*w));
	w->rank = -1;
	h = live_open_header(lk->c, path, O_RDONLY, &head, &elsewhere);
	if (h == -ENOENT || h == -ENODATA) /* closed, or not begun */
		return 0;
	name_log_numbers(name, &w->pid, &w->seq);
	host = name_host(name, &host_len);
	snprintf(w->host, sizeof(w->host), "%.*s", host ? (int)host_len : 0, host ? host : "");
	if (h >= 0) {
		w->bytes = head.words.flushed_len + head.words.staged_len;
		store_close(lk->c->store, &h);
	} else {
		w->state = PLFS_WRITER_UNSEEN;
	}
	if (name_is_our_live(name)) {
		ask_process(w);
	} else if (h >= 0 && !lk->c->store->remote) {
		/*
		 * a container with a name of its own on this machine, or this machine before it was
		 * restarted
		 */
		w->state = live_is_stranded(lk->c, &head.fixed) ? PLFS_WRITER_GONE : PLFS_WRITER_RUNS;
	} else {
		/* its pages come when they are written back, the length of its log sooner */
		w->state = elsewhere || h < 0 ? PLFS_WRITER_UNSEEN : PLFS_WRITER_GONE;
		find_length(lk, path, w);
	}
	now->nr_writers++;
	return 0;
}

/* ---- one file ---- */

static int look(struct plfs_mount *m, int fd, struct plfs_now *now)
{
	struct looking lk = { .now = now };
	struct container c;
	struct stub stub;
	struct stat st;
	int ret;

	if (sys.fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !stub_marked(st.st_mode) || stub_read(fd, &stub))
		return 0;
	now->st = st;
	if (!stub.has_container || stub.in_body)
		return 0;
	nested_init_container(m, &c, fd, &stub, &st);
	lk.c = &c;
	ret = container_list(&c, look_at_live, &lk);
	if (ret == -ENOENT)
		ret = 0;
	if (ret) {
		plfs_now_release(now);
		return ret;
	}
	return now->nr_writers > 0;
}

void plfs_now_release(struct plfs_now *now)
{
	mem_free(now->writers);
	now->writers = NULL;
	now->nr_writers = 0;
}

int plfs_look_now(struct plfs_mount *m, int dirfd, const char *path, struct plfs_now *now)
{
	int saved ERRNO_KEPT = errno;
	int ret, fd = io_openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	memset(now, 0, sizeof(*now));
	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = look(m, fd, now);
	sys_fd_close(&fd);
	return ret;
}

/* ---- all below a directory ---- */

struct walking {
	struct plfs_mount *m;
	void (*fn)(void *arg, const char *path, struct plfs_now *now);
	void *arg;
};

static void each_file(void *arg, const struct walk_entry *e)
{
	struct walking *wk = arg;
	char path[2 * PATH_MAX];
	struct plfs_now now;

	if (plfs_look_now(wk->m, e->dirfd, e->name, &now) != 1)
		return;
	snprintf(path, sizeof(path), "%s/%s", plfs_backend(wk->m), e->path);
	wk->fn(wk->arg, path, &now);
	plfs_now_release(&now);
}

void plfs_look_below(struct plfs_mount *m, const char *path,
		     void (*fn)(void *arg, const char *path, struct plfs_now *now), void *arg)
{
	size_t len = strlen(plfs_backend(m));
	const char *start = strlen(path) > len ? path + len + 1 : "";
	struct walking wk = { .m = m, .fn = fn, .arg = arg };
	struct walk w = { .m = m, .nr_threads = 1, .file = each_file, .arg = &wk };

	walk_run(&w, &start, 1);
}
