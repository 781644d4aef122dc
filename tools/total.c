/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting logical files by their marks and sizes, and logs by their names, without opening any.
 */
#include "total.h"

#include "core/plfs_admin.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>

/* nftw() passes nothing on. */
static struct {
	char *const *paths;
	int nr;
	uint64_t files, bytes;
	bool logs, running, known, stop;
	pthread_t thread;
} total;

/* What a check skips as well: containers, other backends. */
static bool is_skipped(const char *path, const struct FTW *ftw)
{
	char inner[PATH_MAX];

	if (!ftw->level || snprintf(inner, sizeof(inner), "%s/" PLFS_DIR_NAME, path) >= (int)sizeof(inner))
		*inner = '\0';
	return !strcmp(path + ftw->base, PLFS_DIR_NAME) || (*inner && !access(inner, F_OK));
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (__atomic_load_n(&total.stop, __ATOMIC_RELAXED))
		return FTW_STOP;
	if (type == FTW_D && is_skipped(path, ftw))
		return FTW_SKIP_SUBTREE;
	if (total.logs && type == FTW_F && !strncmp(path + ftw->base, "data.", 5)) {
		total.files++;
		total.bytes += (uint64_t)st->st_blocks * 512;
	} else if (!total.logs && type == FTW_F && S_ISREG(st->st_mode) && (st->st_mode & S_ISVTX)) {
		total.files++;
		total.bytes += (uint64_t)st->st_size;
	}
	return FTW_CONTINUE;
}

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; i < total.nr; i++)
		nftw(total.paths[i], visit, 20, FTW_PHYS | FTW_MOUNT | FTW_ACTIONRETVAL);
	__atomic_store_n(&total.known, true, __ATOMIC_RELEASE);
	return NULL;
}

static void begin(char *const *paths, int nr, bool logs)
{
	total.logs = logs;
	total.paths = paths;
	total.nr = nr;
	total.files = total.bytes = 0;
	total.known = total.stop = false;
	total.running = !pthread_create(&total.thread, NULL, count, NULL);
}

void total_begin(char *const *paths, int nr) { begin(paths, nr, false); }

void total_begin_logs(char *const *paths, int nr) { begin(paths, nr, true); }

bool total_known(uint64_t *files, uint64_t *bytes)
{
	if (!total.running || !__atomic_load_n(&total.known, __ATOMIC_ACQUIRE))
		return false;
	*files = total.files;
	*bytes = total.bytes;
	return true;
}

void total_end(void)
{
	__atomic_store_n(&total.stop, true, __ATOMIC_RELAXED);
	if (total.running)
		pthread_join(total.thread, NULL);
	total.running = false;
}
