/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans a container: lists its directories, then calls the parts in order. Live files come before node
 * indexes, as for every reader (gather.h): a log that is closed meanwhile is then in one of the two.
 */
#include "core/admin/scan/scan_container.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/parity.h"
#include "core/admin/scan/lost.h"
#include "core/admin/scan/scan_copies.h"
#include "core/admin/scan/scan_global.h"
#include "core/admin/scan/scan_index.h"
#include "core/admin/scan/scan_live.h"
#include "core/admin/scan/scan_log.h"
#include "core/admin/scan/scan_parity.h"
#include "core/admin/scan/scan_spread.h"
#include "core/backend/stub_use.h"
#include "core/dropping/node_index.h"
#include "core/base/sys.h"

#include <stdio.h>

/* ---- directories ---- */

static int add_leftover(struct scan *l, const char *path, bool doomed)
{
	if (!SCAN_ROOM(l, leftovers))
		return -ENOMEM;
	l->leftovers[l->nr_leftovers] = (struct scan_leftover){ mem_strdup(path), doomed };
	return l->leftovers[l->nr_leftovers++].path ? 0 : -ENOMEM;
}

static int add_foreign(struct scan *l, const char *path, mode_t mode)
{
	const char *what = S_ISLNK(mode) ? "a symbolic link" : S_ISDIR(mode) ? "a directory" :
		S_ISREG(mode) ? "a file" : "a special file";

	if (S_ISLNK(mode))
		findings_add(l->found, PLFS_DAMAGED, "symlink", path, 0,
			     "%s, which libplfs never makes or follows: it may be an attack; examine it and "
			     "remove it", what);
	else
		findings_add(l->found, PLFS_NOTED, "foreign", path, 0,
			     "%s that is no part of a container: it is ignored", what);
	return add_leftover(l, path, false);
}

/* Files that are renamed when they are complete, and those of a killed flattening. */
static bool is_temporary(const char *name)
{
	return strstr(name, ".tmp.") || !strncmp(name, ".plfs-flatten.", 14);
}

/* Logs that no process has released have no name and no record here: they are of no file that is read. */
static int note_elsewhere(struct scan *l, const char *path, const struct place *p)
{
	char host[64];

	place_host(p, host, sizeof(host));
	return findings_add(l->found, PLFS_NOTED, "place-elsewhere", path, 0,
			    "leads to %s on %s, not to this host: what was written there and never closed, synced or "
			    "unlocked is not known here", p->path, host) ? 0 : -ENOMEM;
}

/* Without it nobody finds what is in a place: whether that is anything cannot be told. */
static int check_near(struct scan *l, const char *path, const char *name)
{
	char full[CONTAINER_PATH_LEN], host[64];
	struct place_dir near;
	struct place p;
	size_t len;
	const char *of = name_host(name, &len);
	int ret;

	container_path(l->c, path, full);
	*strrchr(full, '/') = '\0';
	ret = of ? place_read(l->c->store, full, of, len, &p) : -ENOENT;
	if (!ret) {
		ret = place_enter(l->c->store, full, of, len, &near);
		if (!ret)
			place_leave(&near);
		return ret == -EREMOTE ? note_elsewhere(l, path, &p) : 0;
	}
	if (ret != -EBADMSG)
		return 0;
	place_host(&p, host, sizeof(host));
	return findings_add(l->found, PLFS_DAMAGED, "near-damaged", path, 0,
			    "damaged: what is on %s in %s cannot be read; plfs drain there, with the name of the "
			    "place, mends it; if the host is lost, give up with: plfs places --forget %s FILE",
			    host, p.path, host) ? 0 : -ENOMEM;
}

static int add_regular(struct scan *l, const char *path, const char *name)
{
	struct scan_log *log;

	if (is_temporary(name))
		return add_leftover(l, path, true);
	if (!strncmp(name, "damaged.", 8)) {
		findings_add(l->found, PLFS_NOTED, "kept", path, 0,
			     "a repair has replaced it: it can be removed");
		return add_leftover(l, path, false);
	}
	stub_hosts_saw(&l->hosts, name);
	switch (name_kind(name)) {
	case DROPPING_DATA:
		log = scan_log(l, path);
		if (log)
			log->listed = true;
		return log ? 0 : -ENOMEM;
	case DROPPING_LIVE:
		if (!SCAN_ROOM(l, lives))
			return -ENOMEM;
		l->lives[l->nr_lives] = (struct scan_live){ .path = mem_strdup(path), .log = SCAN_NONE };
		return l->lives[l->nr_lives++].path ? 0 : -ENOMEM;
	case DROPPING_INDEX:
		if (!SCAN_ROOM(l, indexes))
			return -ENOMEM;
		l->indexes[l->nr_indexes] = (struct scan_index){ .path = mem_strdup(path) };
		return l->indexes[l->nr_indexes++].path ? 0 : -ENOMEM;
	case DROPPING_COPIES:
		l->has_copies = true;
		return 0;
	case DROPPING_PARITY:
		return 0;
	case DROPPING_NEAR:
		return check_near(l, path, name);
	case DROPPING_SPREAD:
		return scan_spread(l, path, name);
	default:
		return name_is_notice(name) ? 0 : add_foreign(l, path, S_IFREG);
	}
}

struct list_arg {
	struct scan *l;
	const char *dir;
};

/*
 * *@mode: of @path (relative to the container); 0: it was removed. Reports hard links: no writer writes to
 * such a file.
 */
static int mode_of(struct scan *l, const char *path, mode_t *mode)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	container_path(l->c, path, full);
	ret = l->c->store->ops->stat(l->c->store, full, &st);
	*mode = ret ? 0 : st.st_mode;
	if (!ret && S_ISREG(st.st_mode) && !store_may_write(&st))
		findings_add(l->found, PLFS_NOTED, "linked", path, 0,
			     "it has %lu names (hard links), so it is not written to: copy it, and rename "
			     "the copy over it",
			     (unsigned long)st.st_nlink);
	return ret == -ENOENT ? 0 : ret;
}

static int list_hostdir_entry(void *arg, const char *name)
{
	struct list_arg *la = arg;
	char path[CONTAINER_PATH_LEN];
	mode_t mode;
	int ret;

	/* Room for the container's path in front. */
	if (snprintf(path, sizeof(path), "%s/%s", la->dir, name) >= (int)sizeof(path) - 64)
		return add_foreign(la->l, la->dir, S_IFREG);
	ret = mode_of(la->l, path, &mode);
	if (ret || !mode)
		return ret;
	return S_ISREG(mode) ? add_regular(la->l, path, name) : add_foreign(la->l, path, mode);
}

static int list_entry(void *arg, const char *name)
{
	struct scan *l = arg;
	struct list_arg la = { l, name };
	char full[CONTAINER_PATH_LEN];
	mode_t mode;
	int ret;

	if (strlen(name) > CONTAINER_PATH_LEN / 2)
		return add_foreign(l, "", S_IFREG);
	ret = mode_of(l, name, &mode);
	if (ret || !mode)
		return ret;
	if (!strncmp(name, "hostdir.", 8) && S_ISDIR(mode)) {
		container_path(l->c, name, full);
		l->nr_hostdirs++;
		ret = l->c->store->ops->list(l->c->store, full, list_hostdir_entry, &la);
		return ret == -ENOENT || ret == -EREMOTE || (ret == -EIO && l->gone) ? 0 : ret;
	}
	if (S_ISREG(mode) && !strcmp(name, PARITY_NAME)) {
		l->has_parity = true;
		return 0;
	}
	if (S_ISREG(mode) &&
	    (!strcmp(name, "index.global") || !strcmp(name, "lock") || !strncmp(name, "for.", 4)))
		return 0;
	if (S_ISREG(mode) && is_temporary(name))
		return add_leftover(l, name, true);
	return add_foreign(l, name, mode);
}

/* ---- the scan ---- */

static void report_leftovers(struct scan *l)
{
	for (uint32_t i = 0; i < l->nr_leftovers; i++)
		if (l->leftovers[i].doomed)
			findings_add(l->found, PLFS_NOTED, "temporary", l->leftovers[i].path, 0,
				     l->alone ? "a temporary file that a killed process left" :
						"a temporary file, perhaps of a running process");
}

/*
 * After reading the records: a truncation is announced in the header before its record or generation is
 * published.
 */
static void check_cut(struct scan *l, int fd)
{
	struct stub now;

	if (stub_look(fd, &now) || !now.cut_ns || now.generation_ns != l->stub.generation_ns)
		return; /* emptied since, or the header is damaged, which is reported elsewhere */
	l->stub = now;
	l->cut_due = true;
	l->cut_happened = now.cut_size ? l->cut_ns == now.cut_ns : stub_is_emptied(&now);
	if (!l->alone) /* its process may be alive */
		return;
	findings_add(l->found, PLFS_NOTED, "truncation", "", 0,
		     "a process was killed while it truncated the file to %llu bytes, %s by a repair, or by "
		     "the next process that has the file open for writing",
		     (unsigned long long)now.cut_size,
		     l->cut_happened ? "which has taken effect: it is finished" :
		     "without effect yet: it is forgotten");
}

/* Of those that are not void: the log of a void one may be gone. */
static uint64_t nr_writes(const struct scan *l, const struct index_block *block)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;
	uint64_t nr = 0;

	while (index_block_record(block, &cur, &rec) > 0)
		nr += rec.type == INDEX_WRITE && rec.stamp_ns > l->stub.generation_ns;
	return nr;
}

/* As readers do (node_index.h). */
static void check_number(struct scan *l)
{
	uint64_t nr = 0, beyond = 0, beyond_gone = 0;

	for (uint32_t i = 0; i < l->nr_blocks; i++)
		nr += l->blocks[i].told ? 0 : l->blocks[i].block.nr_records;
	for (uint32_t i = 0; i < l->nr_blocks && nr > NODE_INDEX_SPARE_RECORDS; i++) {
		const struct scan_log *log = l->logs[l->blocks[i].log];
		uint64_t has = nr_writes(l, &l->blocks[i].block);

		*(log->listed ? &beyond : &beyond_gone) += has > log->len ? has - log->len : 0;
	}
	l->absurd = beyond > NODE_INDEX_SPARE_RECORDS || beyond_gone > NODE_INDEX_LOST_RECORDS;
	if (l->absurd)
		findings_add(l->found, PLFS_DAMAGED, "index-absurd", "", 0,
			     "the node indexes have more records than the logs have bytes: the file cannot be "
			     "read");
}

static int check_size(struct scan *l)
{
	uint64_t have = l->cut_happened ? l->stub.cut_size : stub_body_len(l->st.st_size);
	int ret;

	if (l->write_end <= have || l->absurd)
		return 0;
	ret = scan_find_end(l, &l->end);
	if (ret || l->end <= have) {
		l->end = 0;
		return ret;
	}
	findings_add(l->found, PLFS_NOTED, "size", "", 0,
		     "the size is %llu bytes by the stub and %llu by the indexes: a repair corrects that, or "
		     "the next process that has the file open for writing and reads or appends",
		     (unsigned long long)have, (unsigned long long)l->end);
	return 0;
}

/* As readers find it. */
static bool is_purged(const struct scan *l, int fd)
{
	struct container c = *l->c;
	struct stat st;

	c.filled = !sys.fstat(fd, &st) && stub_body_len(st.st_size);
	return !l->nr_logs && !l->nr_lives && !l->nr_indexes && container_is_purged(&c);
}

/* Readers find it by hosts_look(). */
static void check_hosts(struct scan *l)
{
	unsigned missing = stub_hosts_missing(&l->hosts);

	if (missing && l->away) /* what was closed there is not known */
		l->gone = true;
	else if (missing && !l->gone)
		findings_add(l->found, PLFS_DAMAGED, "missing-host", "", 0,
			     "%u of the %u hosts that wrote it have no file in the container any more (a purge "
			     "of old files, or a copy of a part?): what no other host has written cannot be "
			     "read; bring the files back, or give them up with: plfs repair --partial",
			     missing, stub_hosts_nr(&l->hosts));
}

/* The live file of a log is noted before it is made. With none there, a process was killed in between. */
static void check_notes(struct scan *l)
{
	if (l->has_notes && l->alone && !l->nr_lives)
		findings_add(l->found, PLFS_NOTED, "notes", "", 0,
			     "a process was killed while it began or ended a log in another backend: while that "
			     "is not there, nothing of the file could be read; a repair removes the note");
}

/* As a chmod of the stub without the library leaves it. */
static void check_mode(const struct scan *l)
{
	struct container c = *l->c;

	c.checked = 0;
	if (container_try_check(&c, CONTAINER_CHANGE) == -EACCES)
		findings_add(l->found, PLFS_NOTED, "closed", "", 0,
			     "more users may write the file than its container, so nobody can: under libplfs, "
			     "chmod go-w the file, then give it its mode");
}

int scan_container(struct scan *l, const struct container *c, int fd, const struct stub *stub,
		   struct plfs_check *check,
	    struct findings *found)
{
	struct stub now;
	int ret;

	*l = (struct scan){ .c = c, .check = check, .found = found, .stub = *stub };
	l->alone = stub_is_alone(fd);
	if (stub_hosts_read(fd, &now, &l->hosts) || now.generation_ns != stub->generation_ns)
		l->hosts.nr = 0; /* the header is reported elsewhere, or the scan is made again */
	ret = c->store->ops->list(c->store, c->dir, list_entry, l);
	if (ret == -ENOENT || (!ret && (!l->nr_hostdirs || is_purged(l, fd)))) {
		l->missing = true;
		findings_add(found, PLFS_DAMAGED, "no-container", "", 0,
			     "the container %s is %s (a purge of old files?): no data from logs can be read, "
			     "and nothing can be written before the file is emptied", c->dir,
			     ret ? "missing" : "empty");
		return 0;
	}
	if (ret == -ELOOP || ret == -ENOTDIR) {
		findings_add(found, PLFS_DAMAGED, "symlink", "", 0,
			     "the container %s is not a directory, and is not followed", c->dir);
		l->missing = true;
		return 0;
	}
	if (!ret)
		check_hosts(l);
	if (!ret)
		check_notes(l);
	if (!ret)
		check_mode(l);
	if (!ret)
		ret = scan_lives(l);
	if (!ret)
		ret = scan_indexes(l);
	if (!ret)
		ret = scan_logs(l);
	if (!ret)
		ret = scan_copies(l);
	if (!ret)
		ret = scan_parity(l);
	if (!ret && l->away)
		ret = scan_away(l);
	if (!ret)
		check_number(l);
	if (!ret)
		ret = scan_global(l);
	if (!ret)
		check_cut(l, fd);
	if (!ret && sys.fstat(fd, &l->st)) /* last: a size is published after the records */
		ret = -errno;
	if (!ret)
		ret = check_size(l);
	report_leftovers(l);
	return ret ? ret : found->ret;
}
