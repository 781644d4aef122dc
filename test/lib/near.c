/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories of near=.
 */
#include "test/lib/near.h"

#include "test/lib/asked.h"

#include "core/base/sys.h"

#include <ftw.h>
#include <sys/mman.h>

char near_dir[64];

void near_setup(const char *options)
{
	char text[200];

	new_dir(near_dir, sizeof(near_dir));
	setenv("PLFS_TEST_NEAR", near_dir, 1);
	snprintf(text, sizeof(text), "{small=0,near=$PLFS_TEST_NEAR%s}", options);
	scratch_map(text);
}

void near_setup_copies(const char *options)
{
	char text[200];

	new_dir(near_dir, sizeof(near_dir));
	snprintf(text, sizeof(text), ",%s{small=0,mirror=2%s}", near_dir, options);
	scratch_map(text);
}

int near_last = 3;

static void backends(const char *share, char *options, size_t len)
{
	char path[100];

	new_dir(near_dir, sizeof(near_dir));
	*options = '\0';
	for (int i = 2; i <= near_last; i++) {
		snprintf(path, sizeof(path), "%s/%d", near_dir, i);
		if (mkdir(path, 0755))
			die("mkdir %s", path);
		snprintf(options + strlen(options), len - strlen(options), ",%s", path);
	}
	snprintf(options + strlen(options), len - strlen(options), "{small=0,%s}", share);
}

void near_backends(const char *rule, char *options, size_t len)
{
	char share[100];

	snprintf(share, sizeof(share), "spread=%s", rule);
	backends(share, options, len);
}

void near_share(const char *share)
{
	char options[400];

	backends(share, options, sizeof(options));
	scratch_map(options);
}

void near_spread(const char *rule)
{
	char options[400];

	near_backends(rule, options, sizeof(options));
	scratch_map(options);
}

int near_map_q(const char *rest)
{
	char map[300];

	snprintf(map, sizeof(map), "/q=%s%s", scratch, rest);
	return plfs_setup(map) < 1 ? -1 : 0;
}

int near_open_q(struct lfile *l, int flags)
{
	struct plfs_mount *m = NULL;
	char path[PATH_MAX];

	if (plfs_path_map("/q/a", path, &m) != 1)
		return -EINVAL;
	l->fd = plfs_open(m, AT_FDCWD, path, flags, 0644, &l->f);
	return l->fd < 0 ? l->fd : 0;
}

int near_bring(void *arg)
{
	struct plfs_drain d = { .to_home = true };

	(void)arg;
	return ldrain("a", &d) || d.nr_left || d.nr_lost;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	return ftw->level || !*scratch ? remove(path) : 0;
}

void near_lose(void) { nftw(near_dir, remove_one, 16, FTW_PHYS | FTW_DEPTH); }

static void begin_draining(int who) { (void)who; }

static void drain_a(const void *order, void *answer)
{
	struct plfs_drain d = { 0 };
	int ret = ldrain("a", &d);

	(void)order;
	*(int *)answer = ret ? ret : (int)d.nr_logs;
}

static struct asked drainer = { .nr = 1, .order_len = 1, .answer_len = sizeof(int),
				.begin = begin_draining, .act = drain_a };

void near_start_drainer(void) { asked_start(&drainer); }
void near_end_drainer(void) { asked_end(&drainer); }

int near_drain_a(void)
{
	int ret;

	asked_ask(&drainer, 0, "", &ret);
	return ret;
}

void near_remove(void)
{
	scratch_remove();
	*scratch = '\0';
	near_lose();
}

static const char *wanted;
static char *found;
static int nr_found;

static int find_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (type != FTW_F || strncmp(path + ftw->base, wanted, strlen(wanted)))
		return 0;
	nr_found++;
	if (found)
		snprintf(found, PATH_MAX, "%s", path);
	return 0;
}

int near_count(const char *prefix)
{
	wanted = prefix;
	found = NULL;
	nr_found = 0;
	nftw(near_dir, find_one, 16, FTW_PHYS);
	return nr_found;
}

bool near_find(const char *prefix, char *path)
{
	wanted = prefix;
	found = path;
	nr_found = 0;
	nftw(near_dir, find_one, 16, FTW_PHYS);
	return nr_found;
}

/* ---- a restart ---- */

int near_errno = ENOENT;

static bool is_elsewhere(const char *path);

static int other_boot(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;
	int fd;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (is_elsewhere(path)) {
		errno = near_errno;
		return -1;
	}
	if (strcmp(path, "/proc/sys/kernel/random/boot_id"))
		return open(path, flags, mode);
	fd = memfd_create("boot", 0);
	return fd < 0 || pwrite(fd, "another\n", 8, 0) != 8 ? -1 : fd;
}

static int (*what)(void *arg);

static int rebooted(void *arg)
{
	sys.open = other_boot;
	return what(arg);
}

int after_reboot(int (*fn)(void *arg))
{
	what = fn;
	return in_child(rebooted, NULL);
}

/* ---- another host ---- */

static bool elsewhere;

static bool is_elsewhere(const char *path)
{
	return elsewhere && !strncmp(path, near_dir, strlen(near_dir));
}

void near_go_elsewhere(void)
{
	elsewhere = true;
	sys.open = other_boot;
}
