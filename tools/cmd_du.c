/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs du and plfs df: how much space files take, with their logs, and how much of it could be had back.
 */
#include "options.h"
#include "progress.h"
#include "tool.h"

#include "core/base/vec.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/statvfs.h>

struct space {
	uint64_t apparent, disk, reclaimable, nr_inodes;
	uint64_t nr_logical, nr_plain;
};

/* A file with several names, which counts once. */
struct met {
	dev_t dev;
	ino_t ino;
};

/* One walk; nftw() passes nothing on. */
static struct {
	struct space sum;
	struct met *met;
	size_t nr_met, cap_met;
	bool each, failed; /* a line for each file; something could not be looked at */
	struct progress progress;
} du;

/* In a column: with -b the number alone. */
static const char *show_size(uint64_t size, char *out)
{
	if (!tool_in_bytes)
		return tool_size(size, out);
	snprintf(out, TOOL_SIZE_LEN, "%llu", (unsigned long long)size);
	return out;
}

static void add(struct space *to, const struct space *one)
{
	to->apparent += one->apparent;
	to->disk += one->disk;
	to->reclaimable += one->reclaimable;
	to->nr_inodes += one->nr_inodes;
	to->nr_logical += one->nr_logical;
	to->nr_plain += one->nr_plain;
}

/* ---- a file ---- */

static int measure_target(struct target *t, struct space *s)
{
	struct plfs_info info = { 0 };
	int ret = 0;

	*s = (struct space){ .apparent = t->size, .disk = (uint64_t)t->st.st_blocks * 512, .nr_inodes = 1,
			     .nr_logical = t->file != NULL, .nr_plain = !t->file };
	if (t->file)
		ret = plfs_get_info(t->file, &info);
	if (!ret && t->file)
		ret = plfs_get_reclaimable(t->file, &info, &s->reclaimable);
	if (!ret && t->file) {
		s->disk = info.space_bytes;
		s->nr_inodes = info.nr_inodes;
	}
	return ret;
}

static bool measure(const char *name, struct space *s)
{
	struct target t;
	int ret;

	if (!target_open(&t, name))
		return false;
	ret = measure_target(&t, s);
	target_close(&t);
	if (ret)
		tool_error("%s: %s", name, strerror(-ret));
	return !ret;
}

/* At the end, for people. */
static void print_hint(const struct space *all)
{
	char size[TOOL_SIZE_LEN];

	if (opt.json || opt.quiet || tool_in_bytes)
		return;
	if (all->reclaimable >= 1 << 20 && all->reclaimable >= all->disk / 8)
		tool_print("%s of overwritten bytes: plfs compact FILE gives them back%s",
			   tool_size(all->reclaimable, size),
			   du.each ? "" : "; plfs du -r shows which files have them");
}

static void print_head(void)
{
	printf("%12s %12s %12s %8s  %s\n", "APPARENT", "ON DISK", "RECLAIMABLE", "INODES", "NAME");
}

/* The members that du and df have both, without the end of the object. */
static void print_members(const char *key, const char *name, const struct space *s)
{
	printf("{\"%s\": ", key);
	tool_print_json(name);
	printf(", \"apparent\": %llu, \"on_disk\": %llu, \"reclaimable\": %llu, \"inodes\": %llu, \"logical\": %llu, "
	       "\"plain\": %llu",
	       (unsigned long long)s->apparent, (unsigned long long)s->disk,
	       (unsigned long long)s->reclaimable, (unsigned long long)s->nr_inodes,
	       (unsigned long long)s->nr_logical, (unsigned long long)s->nr_plain);
}

static void print_line(const struct space *s, const char *name)
{
	char apparent[TOOL_SIZE_LEN], disk[TOOL_SIZE_LEN], reclaimable[TOOL_SIZE_LEN];

	if (opt.json) {
		print_members("name", name, s);
		puts("}");
		return;
	}
	tool_print("%12s %12s %12s %8llu  %s", show_size(s->apparent, apparent), show_size(s->disk, disk),
		   show_size(s->reclaimable, reclaimable), (unsigned long long)s->nr_inodes, name);
}

/* ---- what a file has elsewhere ---- */

static void print_elsewhere(const char *name, const char *where, const char *what, uint64_t bytes,
			    uint64_t nr)
{
	char disk[TOOL_SIZE_LEN];

	if (!opt.json) {
		tool_print("%12s %12s %12s %8llu  %s: %s in %s", "", show_size(bytes, disk), "",
			   (unsigned long long)nr, name, what, where);
		return;
	}
	printf("{\"name\": ");
	tool_print_json(name);
	printf(", \"elsewhere\": ");
	tool_print_json(where);
	printf(", \"what\": \"%s\", \"on_disk\": %llu, \"inodes\": %llu}\n", what,
	       (unsigned long long)bytes, (unsigned long long)nr);
}

static int print_logs(void *arg, const struct plfs_place *p)
{
	if (p->here && p->nr_logs)
		print_elsewhere(arg, p->path, "logs", p->bytes, p->nr_logs);
	return 0;
}

/* What is in the first backend counts with the file. */
static int print_parity(void *arg, const struct plfs_parity *p)
{
	if (p->nr && p->elsewhere)
		print_elsewhere(arg, p->path, "parity", p->bytes, p->nr);
	return 0;
}

static void print_rest(const char *name)
{
	struct plfs_mount *m;
	char path[PATH_MAX];

	if (!target_find(name, path, &m) || !m)
		return;
	plfs_places_of(m, AT_FDCWD, path, print_logs, (void *)name);
	plfs_parity_of(m, AT_FDCWD, path, print_parity, (void *)name);
}

/* ---- a directory ---- */

static bool is_met(const struct stat *st)
{
	struct met *met;

	if (st->st_nlink < 2)
		return false;
	for (size_t i = 0; i < du.nr_met; i++)
		if (du.met[i].dev == st->st_dev && du.met[i].ino == st->st_ino)
			return true;
	met = vec_room(du.met, &du.cap_met, du.nr_met + 1, sizeof(*met));
	if (met) {
		du.met = met;
		met[du.nr_met++] = (struct met){ st->st_dev, st->st_ino };
	}
	return false;
}

/* What is in .plfs belongs to the files that lead there, and to no other. */
static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct space one = { .disk = (uint64_t)st->st_blocks * 512, .nr_inodes = 1 };

	if (type == FTW_NS || type == FTW_DNR) {
		tool_error("%s: %s", path, strerror(errno));
		du.failed = true;
		return FTW_CONTINUE;
	}
	if (type == FTW_D && !strcmp(path + ftw->base, PLFS_DIR_NAME))
		return FTW_SKIP_SUBTREE;
	if (S_ISREG(st->st_mode)) {
		if (is_met(st))
			return FTW_CONTINUE;
		progress_hide(&du.progress);
		if (!measure(path, &one))
			du.failed = true;
		else if (du.each) {
			print_line(&one, path);
			print_rest(path);
		}
		progress_count(&du.progress, du.sum.nr_logical + du.sum.nr_plain, du.sum.disk, NULL);
	}
	add(&du.sum, &one);
	return FTW_CONTINUE;
}

static void walk(const char *path, bool each)
{
	du.sum = (struct space){ 0 };
	du.nr_met = 0;
	du.each = each;
	progress_begin(&du.progress, "", 0);
	if (nftw(path, visit, 20, FTW_PHYS | FTW_MOUNT | FTW_ACTIONRETVAL) < 0) {
		tool_error("%s: %s", path, strerror(errno));
		du.failed = true;
	}
	progress_end(&du.progress);
}

static void du_of(const char *name, bool each, struct space *all)
{
	struct plfs_mount *m;
	char path[PATH_MAX];
	struct space one;
	struct stat st;

	if (!target_find(name, path, &m)) {
		du.failed = true;
		return;
	}
	if (lstat(path, &st)) {
		tool_error("%s: %s", name, strerror(errno));
		du.failed = true;
	} else if (S_ISDIR(st.st_mode)) {
		walk(path, each);
		print_line(&du.sum, name);
		add(all, &du.sum);
	} else if (measure(name, &one)) {
		print_line(&one, name);
		print_rest(name);
		add(all, &one);
	} else {
		du.failed = true;
	}
}

/* ---- a backend ---- */

static void count_orphan(void *arg, const struct plfs_gc_item *item)
{
	struct space *orphans = arg;

	if (item->fate == PLFS_GC_WOULD_BE) {
		orphans->disk += item->bytes;
		orphans->nr_inodes++;
	}
}

static void print_trouble(void *arg, const char *path, const char *why)
{
	(void)arg;
	tool_error("%s: %s", path, why);
}

static void print_size(const char *label, uint64_t size, const char *hint)
{
	char out[TOOL_SIZE_LEN];

	tool_print("%-12s %s%s", label, show_size(size, out), hint);
}

static void print_backend_json(const char *backend, struct space *orphans)
{
	struct space sum = du.sum;
	struct statvfs fs;

	sum.disk += orphans->disk;
	print_members("backend", backend, &sum);
	printf(", \"orphans\": %llu, \"orphan_bytes\": %llu", (unsigned long long)orphans->nr_inodes,
	       (unsigned long long)orphans->disk);
	if (!statvfs(backend, &fs))
		printf(", \"free\": %llu, \"free_inodes\": %llu",
		       (unsigned long long)fs.f_bavail * fs.f_frsize, (unsigned long long)fs.f_favail);
	puts("}");
}

static void df_of(const char *name)
{
	struct space orphans = { 0 };
	struct plfs_gc gc = { .dry = true, .nr_threads = 4, .item = count_orphan,
			      .trouble = print_trouble, .arg = &orphans };
	char path[PATH_MAX], hint[PATH_MAX + 100];
	struct plfs_mount *m;
	struct statvfs fs;
	const char *backend;

	if (!target_find(name, path, &m)) {
		du.failed = true;
		return;
	}
	if (!m) {
		tool_error("%s: %s", name, target_unmapped(path, NOT_ON_A_BACKEND));
		du.failed = true;
		return;
	}
	backend = plfs_backend(m);
	walk(backend, false);
	du.failed |= plfs_gc(m, &gc) || gc.nr_troubles;
	if (opt.json) {
		print_backend_json(backend, &orphans);
		return;
	}
	tool_print("%-12s %s", "Backend", backend);
	printf("%-12s %llu logical, %llu plain\n", "Files", (unsigned long long)du.sum.nr_logical,
	       (unsigned long long)du.sum.nr_plain);
	print_size("Apparent", du.sum.apparent, "");
	print_size("On disk", du.sum.disk + orphans.disk, "");
	printf("%-12s %llu\n", "Inodes", (unsigned long long)du.sum.nr_inodes);
	print_size("Overwritten", du.sum.reclaimable,
		   du.sum.reclaimable ? ", in logs of files: plfs compact FILE gives it back; plfs du -r shows which" : "");
	snprintf(hint, sizeof(hint), ", in %llu containers that no file leads to: plfs gc -a 0 %s removes them",
		 (unsigned long long)orphans.nr_inodes, backend);
	print_size("Orphans", orphans.disk, orphans.nr_inodes ? hint : "");
	if (!statvfs(backend, &fs)) {
		print_size("Free", fs.f_bavail * fs.f_frsize, ", on its file system");
		printf("%-12s %llu\n", "Free inodes", (unsigned long long)fs.f_favail);
	}
}

/* ---- the commands ---- */

static int run_du(const struct verb *v, int argc, char **argv)
{
	struct space all = { 0 };
	bool each = false;

	while (options_next(v, argc, argv) != -1)
		each = true;
	if (optind == argc)
		return tool_misuse(v->name, "no path given");
	target_setup(opt.map, argv + optind, argc - optind);
	if (!opt.json && !opt.quiet)
		print_head();
	for (int i = optind; i < argc; i++)
		du_of(argv[i], each || opt.verbose, &all);
	if (argc - optind > 1 && !opt.json && !opt.quiet)
		print_line(&all, "total");
	print_hint(&all);
	mem_free(du.met);
	return tool_finish(du.failed ? TOOL_FAILED : TOOL_OK);
}

static int run_df(const struct verb *v, int argc, char **argv)
{
	while (options_next(v, argc, argv) != -1)
		;
	if (optind == argc)
		return tool_misuse(v->name, "no backend given");
	target_setup(opt.map, argv + optind, argc - optind);
	for (int i = optind; i < argc; i++) {
		if (i > optind && !opt.json)
			putchar('\n');
		df_of(argv[i]);
	}
	mem_free(du.met);
	return tool_finish(du.failed ? TOOL_FAILED : TOOL_OK);
}

const struct verb verb_du = {
	.name = "du",
	.run = run_du,
	.what = "show how much space files take, and what could be had back",
	.arguments = "FILE|DIR...",
	.about = "Show how much space files take: their size as programs see it, the space on disk with logs and indexes,\n"
		 "the bytes in logs that were overwritten or cut off, and the number of inodes.\n",
	.options = (const struct verb_option[]){
		{ 'r', "recursive", NULL, "a line for each file in a directory and below it, not only their sum" },
		{ 0 },
	},
};

const struct verb verb_df = {
	.name = "df",
	.run = run_df,
	.what = "show the same of a whole backend",
	.arguments = "BACKEND|PATH...",
	.about = "Show what a whole backend holds, and how much space could be had back in which way.\n",
};
