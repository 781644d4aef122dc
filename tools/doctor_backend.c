/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is to be said of a backend: whose its containers are, what lies above and below it, and, as plfs check
 * and plfs gc find them, its files and containers.
 */
#include "doctor.h"

#include <stdlib.h>

/* ---- .plfs ---- */

static void look_at_none(struct doctor *d)
{
	char init[2 * PATH_MAX + 32];
	struct stat st;

	if (!fstatat(d->dir, PLFS_DIR_NAME, &st, AT_SYMLINK_NOFOLLOW)) {
		snprintf(init, sizeof(init), "mv %s/" PLFS_DIR_NAME " %s/plfs.old", d->backend, d->backend);
		doctor_says(d, ILL, "backend", S_ISDIR(st.st_mode) ? "" : init,
			    PLFS_DIR_NAME " %s: nothing can be written here",
			    S_ISDIR(st.st_mode) ? "cannot be opened by this user" :
						  "is no directory, and is in the way of one");
		return;
	}
	snprintf(init, sizeof(init), "plfs init %s", d->backend);
	if (d->st.st_mode & (S_IWGRP | S_IWOTH))
		doctor_says(d, ILL, "backend", init,
			    "it is none yet, and several users may write here: its owner makes it one; else the first "
			    "who writes owns what has the data of all");
	else
		doctor_says(d, REMARK, "backend", "",
			    "it is none yet: the first write of a job makes it one; for several users, whose "
			    "directories lie below, the owner runs: %s", init);
}

static void look_at_owner(struct doctor *d)
{
	bool shared = d->st.st_mode & (S_IWGRP | S_IWOTH), open = d->plfs_st.st_mode & (S_IWGRP | S_IWOTH);
	char init[PATH_MAX + 16];

	snprintf(init, sizeof(init), "plfs init %s", d->backend);
	if (shared && d->plfs_st.st_uid && d->plfs_st.st_uid != d->st.st_uid)
		doctor_says(d, ILL, "owner", init,
			    PLFS_DIR_NAME " belongs to user %u, who could remove the data of other users; the owner "
			    "of the directory, user %u, corrects it", (unsigned)d->plfs_st.st_uid,
			    (unsigned)d->st.st_uid);
	else if (!plfs_counts(&d->st, &d->plfs_st, d->st.st_uid))
		doctor_says(d, ILL, "owner", init,
			    PLFS_DIR_NAME " belongs to user %u, who has nothing to do with the directory of user %u: "
			    "it does not count for files of others", (unsigned)d->plfs_st.st_uid,
			    (unsigned)d->st.st_uid);
	else if ((shared && !(d->st.st_mode & S_ISVTX)) || (open && !(d->plfs_st.st_mode & S_ISVTX)))
		doctor_says(d, ILL, "owner", init,
			    "several users may write here, and %s is not sticky (chmod +t): each could take "
			    "away the data of others", shared && !(d->st.st_mode & S_ISVTX) ? "the directory" : PLFS_DIR_NAME);
	else if (shared && !open)
		doctor_says(d, ILL, "owner", init,
			    "several users may write here, but not in " PLFS_DIR_NAME " (mode %04o)",
			    (unsigned)d->plfs_st.st_mode & 07777);
	else
		doctor_says(d, WELL, "owner", "", "user %u has the containers, mode %04o",
			    (unsigned)d->plfs_st.st_uid, (unsigned)d->plfs_st.st_mode & 07777);
}

static void look_at_format(struct doctor *d)
{
	char text[4096] = "";
	int fd = openat(d->plfs, "format", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd < 0 && errno == ENOENT)
		doctor_says(d, REMARK, "format", "",
			    "there is no " PLFS_DIR_NAME "/format: the next write makes it");
	else if (n < 0)
		doctor_says(d, ILL, "format", "", PLFS_DIR_NAME "/format cannot be read: %s",
			    strerror(errno));
	else if (strncmp(text, "plfs-format ", 12))
		doctor_says(d, ILL, "format", "rm " PLFS_DIR_NAME "/format",
			    PLFS_DIR_NAME "/format is damaged, and nothing new can be written; if only this version "
			    "has written here, remove it: the next write makes it anew");
	else if (strtoul(text + 12, NULL, 10) != 1)
		doctor_says(d, ILL, "format", "use the newer libplfs", "a newer libplfs has written here: %.20s",
			    strtok(text, "\n"));
	else if (!strstr(text, "\nbare sentence\n"))
		doctor_says(d, REMARK, "format", "",
			    "an older libplfs has begun this backend: small files of its time are known by their "
			    "sticky bit alone, which chmod and cp take away");
	else
		doctor_says(d, WELL, "format", "", "1, as this version writes it");
	if (fd >= 0)
		close(fd);
}

void doctor_backend(struct doctor *d)
{
	const char *outer = plfs_outer_backend(d->m);

	if (d->plfs < 0) {
		look_at_none(d);
	} else {
		look_at_owner(d);
		look_at_format(d);
	}
	if (outer)
		doctor_says(d, REMARK, "nested", "",
			    "it lies in the backend %s: files of either mapping can be used under both, but their "
			    "data lie apart; move and archive the two together", outer);
}

/* ---- files, as plfs check --quick ---- */

/* The codes of findings that are told together. */
static const struct kind {
	const char *code, *text, *remedy;
} KINDS[] = {
	{ "backend", "is a backend of its own below this one", "" },
	{ "mark", "has lost its mark, or has a wrong one: it is read as it should be", "plfs repair -r" },
	{ "moved", "was copied or restored without the library: if it is removed its container stays",
	  "plfs repair -r" },
	{ "copy", "shares its container with another file: writing to one changes both", "plfs check -r" },
	{ "purged", "has lost logs to a purge", "plfs check -r" },
	{ "stranger", "was written without the library", "plfs check -r" },
	{ "size", "has a shorter stub than it is long, after a kill", "plfs repair -r" },
	{ "killed", "was not closed by a process that was killed, by which nothing is lost", "plfs repair -r" },
	{ "temporary", "has temporary files in its container", "plfs gc" },
	{ "linked", "has files in its container with a second name: it is not written to", "plfs check -r" },
};

struct tree {
	struct doctor *d;
	uint64_t nr[ARRAY_SIZE(KINDS) + 1]; /* the last: damage of any other kind */
	bool ill[ARRAY_SIZE(KINDS) + 1];    /* one of them is damage */
	char first[ARRAY_SIZE(KINDS) + 1][256], last[ARRAY_SIZE(KINDS) + 1][256];
	char failed[512]; /* the first that could not be looked at */
};

static size_t kind_of(const struct plfs_finding *f)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(KINDS) && strcmp(f->code, KINDS[i].code))
		i++;
	return i;
}

/* A file is counted once for its findings of one kind, which come one after the other. */
static void take_finding(void *arg, const struct plfs_finding *f)
{
	struct tree *t = arg;
	size_t i = kind_of(f);

	if (f->severity == PLFS_FAILED && !*t->failed)
		snprintf(t->failed, sizeof(t->failed), "%s%s%s: %s", f->file, *f->path ? "/" : "", f->path,
			 f->text);
	if (f->severity == PLFS_FAILED || (i == ARRAY_SIZE(KINDS) && f->severity == PLFS_NOTED) ||
	    (!strcmp(f->code, "backend") && !strcmp(f->file, t->d->backend)))
		return;
	t->ill[i] |= f->severity == PLFS_DAMAGED;
	if (!strcmp(t->last[i], f->file) && *t->last[i])
		return;
	snprintf(t->last[i], sizeof(t->last[i]), "%s", f->file);
	if (!t->nr[i]++)
		snprintf(t->first[i], sizeof(t->first[i]), "%s", f->file);
}

static void show_files(void *arg, const struct plfs_check *check)
{
	struct tree *t = arg;

	progress_count(&t->d->progress, check->nr_files, check->log_bytes, &check->nr_damaged);
}

/* What another user keeps for himself is no problem of this one's; root can read it, if it can be read. */
static enum health unread(void)
{
	return geteuid() ? REMARK : ILL;
}

static void tell_files(struct tree *t, const struct plfs_check *check)
{
	const size_t other = ARRAY_SIZE(KINDS);
	struct doctor *d = t->d;
	char remedy[PATH_MAX + 32], more[32] = "";

	for (size_t i = 0; i <= other; i++) {
		const char *command = i < other ? KINDS[i].remedy : "plfs check -r";

		if (!t->nr[i])
			continue;
		snprintf(remedy, sizeof(remedy), *command ? "%s %s" : "%s", command, d->backend);
		*more = '\0';
		if (t->nr[i] > 1)
			snprintf(more, sizeof(more), ", and %llu more", (unsigned long long)t->nr[i] - 1);
		doctor_says(d, t->ill[i] ? ILL : REMARK,
			    i < other ? KINDS[i].code : "damage", *command ? remedy : "", "%s %s%s",
			    t->first[i], i < other ? KINDS[i].text : "is damaged", more);
	}
	if (*t->failed)
		doctor_says(d, unread(), "unreadable", "run it as root, or as the owner of the files", "%s%s",
			    t->failed, check->nr_failed > 1 ? "; and others" : "");
	if (!check->nr_damaged && !check->nr_failed)
		doctor_says(d, WELL, "files", "",
			    "%llu logical and %llu plain; their headers and indexes are sound",
			    (unsigned long long)check->nr_files, (unsigned long long)check->nr_plain);
}

/* ---- containers, as plfs gc -n ---- */

static void note_trouble(void *arg, const char *path, const char *why)
{
	struct tree *t = arg;

	if (!*t->failed)
		snprintf(t->failed, sizeof(t->failed), "%s%s%s: %s", t->d->backend, *path ? "/" : "", path,
			 why);
}

static void show_containers(void *arg, const char *what, uint64_t done, uint64_t total)
{
	struct tree *t = arg;

	progress_tally(&t->d->progress, what, done, total);
}

static void tell_orphans(struct tree *t, const struct plfs_gc *gc)
{
	struct doctor *d = t->d;
	char remedy[PATH_MAX + 16], size[TOOL_SIZE_LEN];
	uint64_t old = gc->nr_left - gc->nr_young - gc->nr_failed;

	snprintf(remedy, sizeof(remedy), "plfs gc %s", d->backend);
	if (gc->nr_unknown)
		doctor_says(d, unread(), "orphans", "run it as root, or mend what cannot be read",
			    "gc could remove nothing that %s may lead to: %llu containers stay", t->failed,
			    (unsigned long long)gc->nr_unknown);
	if (old)
		doctor_says(d, REMARK, "orphans", remedy,
			    "%llu containers or temporary files that no file leads to: %s",
			    (unsigned long long)old, tool_size(gc->left_bytes - gc->young_bytes, size));
	if (gc->nr_young)
		doctor_says(d, REMARK, "orphans", "",
			    "%llu more, younger than a day: %s; plfs gc -a 0 %s removes them now",
			    (unsigned long long)gc->nr_young, tool_size(gc->young_bytes, size), d->backend);
	if (gc->nr_failed)
		doctor_says(d, unread(), "orphans", "run it as root", "%llu containers could not be looked at",
			    (unsigned long long)gc->nr_failed);
	if (!gc->nr_unknown && !gc->nr_left)
		doctor_says(d, WELL, "orphans", "", "none: a file leads to each of %llu containers",
			    (unsigned long long)gc->nr_containers);
}

void doctor_tree(struct doctor *d)
{
	struct tree t = { .d = d };
	struct plfs_check check = { .quick = true, .found = take_finding, .progress = show_files, .arg = &t };
	struct plfs_gc gc = {
		.age_ns = 86400 * 1000000000ULL, .dry = true, .nr_threads = d->nr_threads,
		.trouble = note_trouble, .progress = show_containers, .arg = &t,
	};

	progress_begin(&d->progress, d->backend, 0);
	plfs_check_tree(d->m, d->backend, d->nr_threads, &check);
	progress_hide(&d->progress);
	tell_files(&t, &check);
	*t.failed = '\0';
	if (plfs_gc(d->m, &gc))
		doctor_says(d, ILL, "orphans", "", "could not be looked for%s%s", *t.failed ? ": " : "",
			    t.failed);
	else
		tell_orphans(&t, &gc);
	progress_end(&d->progress);
}
