/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near=auto: one answer for all processes of a job on this node, in a file.
 */
#include "core/backend/auto_take.h"

#include "core/backend/auto_find.h"
#include "core/backend/place.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/store/dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#define NONE "/" /* no directory can be taken */
#define ALONE_S 3600      /* so long a choice counts without a job */
#define OLD_S (7 * 86400) /* after that it is of a job that has gone */

struct choice {
	struct place_settings ps; /* of the directory that has the file */
	char name[128];
};

static void name_choice(struct choice *ch, const char *backend)
{
	const char *id = auto_job();

	ch->ps = (struct place_settings){ .near = AUTO_MEMORY_DIR, .home = backend };
	place_settings_init(&ch->ps);
	snprintf(ch->name, sizeof(ch->name), "auto.%s.%.64s", ch->ps.backend_id, id ? id : "none");
	for (char *p = ch->name; *p; p++)
		if (*p == '/')
			*p = '_';
}

/* Whether the directory is there for this process too: it may see other mounts. */
static bool parse_choice(char *text, char *dir, uint64_t *max)
{
	char *tab = strchr(text, '\t'), *end;

	if (!tab || *text != '/' || tab - text > CONFIG_NEAR_MAX)
		return false;
	*tab = '\0';
	*max = strtoull(tab + 1, &end, 10);
	if (end == tab + 1 || *end != '\n' || (strcmp(text, NONE) && sys.euidaccess(text, W_OK | X_OK)))
		return false;
	strcpy(dir, strcmp(text, NONE) ? text : "");
	return true;
}

/* In the directory @at. */
static bool read_choice(int at, const char *name, char *dir, uint64_t *max)
{
	int fd = io_openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	char text[CONFIG_NEAR_MAX + 64];
	struct timespec now;
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return false;
	sys.clock_gettime(CLOCK_REALTIME, &now);
	if (!sys.fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (auto_job() || now.tv_sec - st.st_mtim.tv_sec < ALONE_S))
		n = io_read(fd, text, sizeof(text) - 1);
	io_close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return parse_choice(text, dir, max);
}

bool auto_chosen(const char *backend, char *dir, uint64_t *max)
{
	struct choice ch;
	bool found;
	int at;

	name_choice(&ch, backend);
	at = place_open_user(&ch.ps);
	if (at < 0)
		return false;
	found = read_choice(at, ch.name, dir, max);
	sys_fd_close(&at);
	return found;
}

static int remove_old(void *arg, int at, const char *name, unsigned char type)
{
	const struct timespec *now = arg;
	struct stat st;

	(void)type;
	if (!strncmp(name, "auto.", 5) && !sys.fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    now->tv_sec - st.st_mtim.tv_sec > OLD_S)
		sys.unlinkat(at, name, 0);
	return 0;
}

static int make_user(const struct place_settings *ps)
{
	char user[64];

	snprintf(user, sizeof(user), "%s/plfs.%u", ps->near, (unsigned)geteuid());
	if (!sys.mkdir(user, 0755))
		sys.chmod(user, 0755); /* the umask has its say in the first */
	return place_open_user(ps);
}

/* Write the choice, unless another has, which is then taken. */
static void leave_choice(struct choice *ch, char *dir, uint64_t *max)
{
	char text[CONFIG_NEAR_MAX + 64], tmp[sizeof(ch->name) + 32];
	int len = snprintf(text, sizeof(text), "%s\t%llu\n", *dir ? dir : NONE, (unsigned long long)*max);
	int at = make_user(&ch->ps), fd, list;
	struct timespec now;

	if (at < 0)
		return;
	snprintf(tmp, sizeof(tmp), "%s.tmp.%d", ch->name, (int)sys.getpid());
	fd = io_openat(at, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		bool whole = io_pwrite_all(fd, text, (size_t)len, 0) == len;

		io_close(fd);
		sys.clock_gettime(CLOCK_REALTIME, &now);
		list = whole ? dirs_open(at, ".") : -1;
		if (list >= 0) {
			dirs_list(list, remove_old, &now);
			io_close(list);
		}
		if (whole && sys.linkat(at, tmp, at, ch->name, 0) && errno == EEXIST &&
		    !read_choice(at, ch->name, dir, max))
			sys.renameat(at, tmp, at, ch->name); /* it is too old, or of other mounts */
		sys.unlinkat(at, tmp, 0);
	}
	sys_fd_close(&at);
}

static void report(const char *backend, const struct auto_found *f)
{
	for (int i = 0; i < f->nr; i++)
		msg_debug(MSG_CONFIG, "near=auto: %s (%s): %s", f->v[i].dir, f->v[i].fs,
			  i == f->taken ? "taken" : f->v[i].why ? f->v[i].why : "not taken");
	if (f->taken < 0)
		msg_debug(MSG_CONFIG, "near=auto: no directory of this node can be taken: logs are written to %s",
			  backend);
}

bool auto_take(const char *backend, char *dir, uint64_t *max)
{
	struct auto_found *f;
	struct choice ch;

	*dir = '\0';
	*max = 0;
	if (getauxval(AT_SECURE))
		return false;
	if (auto_chosen(backend, dir, max))
		return *dir;
	f = mem_alloc(sizeof(*f));
	if (!f)
		return false;
	if (!auto_find(f, backend, "")) {
		report(backend, f);
		if (f->taken >= 0) {
			strcpy(dir, f->v[f->taken].dir);
			*max = f->v[f->taken].max;
		}
		name_choice(&ch, backend);
		leave_choice(&ch, dir, max);
	}
	mem_free(f);
	return *dir;
}
