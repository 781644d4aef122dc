/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs flatten: make plain files of logical ones. Core does it in place; flatten_out.c writes elsewhere.
 */
#include "flatten_out.h"
#include "options.h"

#include <ftw.h>
#include <stdlib.h>
#include <time.h>

/* ---- in its place ---- */

enum { DONE, PLAIN_ALREADY, FAILED };

static int flatten_in_place(const char *name, uint64_t *bytes)
{
	struct watched w = { .watch = { .temp = flatten_temp_named } };
	char holder[128], hint[160];
	struct target t;
	bool plain;
	int ret;

	if (!target_open(&t, name))
		return FAILED;
	plain = !t.file;
	target_close(&t);
	if (plain)
		return PLAIN_ALREADY;
	flatten_watch(&w, &t);
	ret = plfs_flatten(AT_FDCWD, t.path, &w.watch);
	snprintf(hint, sizeof(hint), "%s%s", ret == -EBUSY ? tool_holder(t.path, holder, sizeof(holder)) : "",
		 ret == -EBUSY ? ": close it, or use -o" : ret == -EMLINK ? "; use -o" : "");
	if (flatten_unwatch(&w, name, ret, hint))
		return FAILED;
	*bytes += t.size;
	return DONE;
}

/* ---- the sums ---- */

static struct {
	uint64_t nr[FAILED + 1], bytes;
	double begun_s;
} sum;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_json(const char *name, const char *out, int result, uint64_t bytes)
{
	static const char *const results[] = { "flattened", "plain", "failed" };

	printf("{\"file\": ");
	tool_print_json(name);
	if (out) {
		printf(", \"output\": ");
		tool_print_json(out);
	}
	printf(", \"result\": \"%s\", \"bytes\": %llu}\n", results[result], (unsigned long long)bytes);
}

/* @each: the file was named, and not found in a directory. */
static void flatten_one(const char *name, const char *out, bool each)
{
	char size[TOOL_SIZE_LEN];
	uint64_t bytes = 0;
	int result;

	if (out)
		result = flatten_elsewhere(name, out, &bytes) ? FAILED : DONE;
	else
		result = flatten_in_place(name, &bytes);
	sum.nr[result]++;
	sum.bytes += bytes;
	if (opt.json || opt.verbose || each || result == FAILED)
		flatten_all_hide();
	if (opt.json)
		print_json(name, out, result, bytes);
	else if (result == PLAIN_ALREADY && !opt.quiet && (each || opt.verbose))
		tool_print("%s is a plain file already", name);
	else if (result == DONE && opt.verbose)
		tool_print("%s%s%s: %s", name, out ? " to " : "", out ? out : "", tool_size(bytes, size));
}

static void print_sum(void)
{
	char size[TOOL_SIZE_LEN], rate[TOOL_SIZE_LEN];
	double seconds = now_s() - sum.begun_s;

	if (opt.json || opt.quiet)
		return;
	printf("%llu flattened, %s in %.1f s (%s/s); %llu plain already, %llu failed\n",
	       (unsigned long long)sum.nr[DONE], tool_size(sum.bytes, size), seconds,
	       tool_size((uint64_t)((double)sum.bytes / (seconds > 0.001 ? seconds : 0.001)), rate),
	       (unsigned long long)sum.nr[PLAIN_ALREADY], (unsigned long long)sum.nr[FAILED]);
}

/* ---- directories ---- */

/* Flattening renames a file into its own place, so the walk may meet it twice: then it is plain. */
static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_NS || type == FTW_DNR) {
		tool_error("%s: %s", path, strerror(errno));
		sum.nr[FAILED]++;
	} else if (type == FTW_D && !strcmp(path + ftw->base, PLFS_DIR_NAME)) {
		return FTW_SKIP_SUBTREE;
	} else if (S_ISREG(st->st_mode)) {
		flatten_one(path, NULL, false);
	}
	return FTW_CONTINUE;
}

static void flatten_path(const char *name, bool recursive)
{
	struct plfs_mount *m;
	char path[PATH_MAX];
	struct stat st;

	if (!recursive || !target_find(name, path, &m) || lstat(path, &st) || !S_ISDIR(st.st_mode)) {
		flatten_one(name, NULL, true);
		return;
	}
	flatten_all_begin(&(char *){ path }, 1);
	if (nftw(path, visit, 20, FTW_PHYS | FTW_MOUNT | FTW_ACTIONRETVAL) < 0) {
		tool_error("%s: %s", path, strerror(errno));
		sum.nr[FAILED]++;
	}
	flatten_all_end();
}

/* ---- the command ---- */

/* Whether @out is a directory, which gets the copies under their own names. */
static bool is_directory(const char *out)
{
	struct plfs_mount *m;
	char path[PATH_MAX];
	struct stat st;

	return target_find(out, path, &m) && !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void flatten_into(const char *name, const char *dir)
{
	const char *slash = strrchr(name, '/');
	char out[PATH_MAX];

	if (snprintf(out, sizeof(out), "%s/%s", dir, slash ? slash + 1 : name) < (int)sizeof(out)) {
		flatten_one(name, out, true);
	} else {
		tool_error("%s: %s", dir, strerror(ENAMETOOLONG));
		sum.nr[FAILED]++;
	}
}

static int flatten_all(char **names, int nr, const char *out, bool recursive)
{
	bool into = out && is_directory(out);

	if (out && nr > 1 && !into)
		return tool_misuse("flatten", "-o takes one file, or a directory that exists");
	sum.begun_s = now_s();
	for (int i = 0; i < nr; i++)
		if (into)
			flatten_into(names[i], out);
		else if (out)
			flatten_one(names[i], out, true);
		else
			flatten_path(names[i], recursive);
	if (nr > 1 || recursive || opt.verbose || isatty(STDOUT_FILENO))
		print_sum();
	return sum.nr[FAILED] ? TOOL_FAILED : TOOL_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
	const char *out = NULL;
	bool recursive = false;
	char **names;
	int c, nr;

	while ((c = options_next(v, argc, argv)) != -1) {
		switch (c) {
		case 'o':
			out = optarg;
			break;
		case 'p':
			flatten_partial = true;
			break;
		case 'r':
			recursive = true;
			break;
		}
	}
	nr = argc - optind;
	if (!nr)
		return tool_misuse(v->name, "no file given");
	if (out && recursive)
		return tool_misuse(v->name, "-r is for files in their place; copy directories with: plfs run cp -r");
	if (!out)
		target_directory_hint = ": use -r to flatten everything below it";
	names = calloc((size_t)nr + 1, sizeof(*names));
	if (!names)
		return TOOL_FAILED;
	memcpy(names, argv + optind, (size_t)nr * sizeof(*names));
	names[nr] = (char *)out;
	target_setup(opt.map, names, nr + (out != NULL));
	flatten_watch_signals();
	c = flatten_all(names, nr, out, recursive);
	free(names);
	return tool_finish(c);
}

const struct verb verb_flatten = {
	.name = "flatten",
	.run = run,
	.what = "turn files into plain files, or make a plain copy",
	.arguments = "FILE...",
	.about = "Turn logical files into plain files, which need no library, or write a plain copy of them elsewhere.\n",
	.options = (const struct verb_option[]){
		{ 'r', "recursive", NULL, "flatten all files in directories and below them" },
		{ 'o', "output", "OUT", "write the plain copy to OUT, or into the directory OUT, and keep FILE as it is" },
		{ 'p', "partial", NULL, "go on if bytes are damaged or lost: damaged ones are copied as they are,\n"
		  "lost ones are zeros, and the exit status is 1" },
		{ 0 },
	},
};
