/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding logs in a place by their names, where near.HOST does not lead to them.
 */
#include "core/admin/places/mend.h"

#include "core/backend/names.h"
#include "core/backend/place.h"
#include "core/base/io.h"

#include <stdio.h>

bool drain_counts(struct plfs_drain *d, int ret)
{
	if (!ret || ret == -ENOENT) /* or it was removed, or moved, meanwhile */
		return false;
	if (ret == -EIO || ret == -EBADMSG)
		d->nr_lost++;
	else
		d->nr_left++;
	return ret != -EBUSY && ret != -ETIME;
}

void drain_note_open(struct plfs_drain *d, const struct container *c, const char *log,
		     struct drain_open *open)
{
	char live[CONTAINER_PATH_LEN];
	bool runs;

	name_live_of_log(log, live);
	runs = name_is_running(name_of(live));
	if (!runs && open->ends && listed_has(open->ends, log)) {
		d->nr_lost++;
		drain_trouble(d, c->dir, log,
			      "its process was killed, and its end is lost: it stays; plfs check lists what cannot be read");
		return;
	}
	open->nr++;
	open->nr_dead += !runs;
}

void drain_trouble(struct plfs_drain *d, const char *dir, const char *path, const char *why)
{
	char full[2 * CONTAINER_PATH_LEN];

	if (!d->trouble)
		return;
	snprintf(full, sizeof(full), "%s/%s", dir, path);
	d->trouble(d->arg, full, why);
}

void drain_unfinished(struct plfs_drain *d, const struct container *c, const char *live, const char *text)
{
	char full[CONTAINER_PATH_LEN], why[PLACE_PATH_LEN + 200];
	size_t len;
	const char *host = name_host(name_of(live), &len);
	struct place p;
	int h;

	container_path(c, live, full);
	h = store_open(c->store, full, O_RDWR | STORE_BRIEFLY, 0);
	if (h >= 0) {
		store_close(c->store, &h);
	} else {
		*strrchr(full, '/') = '\0';
		if (!host || place_read(c->store, full, host, len, &p))
			*p.path = '\0';
		snprintf(why, sizeof(why),
			 "its process was killed, and its log cannot be closed in its place %s: %s; plfs flatten FILE saves what is there",
			 p.path, strerror(-h));
		text = why;
	}
	drain_trouble(d, c->dir, live, text);
}

void drain_count_orphan(struct plfs_drain *d, const char *dir, const char *name, int ret)
{
	char why[100];

	d->nr_orphans += !ret;
	d->nr_left += ret != 0;
	if (!ret)
		return;
	snprintf(why, sizeof(why), "no file has it any more, and it cannot be removed: %s", strerror(-ret));
	drain_trouble(d, dir, name, why);
}

void drain_not_copied(struct plfs_drain *d, const struct container *c, const char *log, const char *to,
		      int err)
{
	char why[PLACE_PATH_LEN + 100];

	snprintf(why, sizeof(why), "no copy in %s: %s", to,
		 err == -ENXIO ? "the backend is not there" : strerror(-err));
	drain_trouble(d, c->dir, log, why);
}

struct mending {
	const struct container *c;
	const char *top;
	struct plfs_drain *d;
	const char *hostdir; /* "hostdir.K" */
	char last[64];       /* the host that was mended last: mostly there is one */
};

static int mend_host(void *arg, int fd, const char *name, unsigned char type)
{
	struct mending *m = arg;
	enum dropping_kind kind = name_kind(name);
	char dir[CONTAINER_PATH_LEN], text[sizeof(m->last)];
	size_t len;
	const char *host = kind == DROPPING_DATA || kind == DROPPING_LIVE ? name_host(name, &len) : NULL;
	int ret;

	(void)fd, (void)type;
	if (!host || len >= sizeof(text))
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)len, host);
	if (!strcmp(text, m->last))
		return 0;
	memcpy(m->last, text, sizeof(text));
	container_path(m->c, m->hostdir, dir);
	ret = place_mend(m->c->store, m->top, dir, text, container_file_mode(m->c, false));
	if (!ret || ret == -ENOENT) /* moved meanwhile */
		return 0;
	m->d->nr_left++;
	drain_trouble(m->d, dir, name,
		      ret == -EREMOTE ? "is in the place, and near.HOST of its container leads elsewhere: it stays" :
					strerror(-ret));
	return 0;
}

static int mend_hostdir(void *arg, int fd, const char *name, unsigned char type)
{
	struct mending *m = arg;
	int dir = strncmp(name, "hostdir.", 8) ? -1 : dirs_open(fd, name);

	(void)type;
	if (dir < 0)
		return 0;
	m->hostdir = name;
	*m->last = '\0';
	dirs_list(dir, mend_host, m);
	io_close(dir);
	return 0;
}

void drain_mend(const struct container *c, const char *top, int fd, const char *name, struct plfs_drain *d)
{
	struct mending m = { .c = c, .top = top, .d = d };
	int dir = dirs_open(fd, name);

	if (dir < 0)
		return;
	dirs_list(dir, mend_hostdir, &m);
	io_close(dir);
}
