/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs places: options, output and exit codes.
 */
#include "auto.h"
#include "options.h"
#include "place_names.h"
#include "places.h"
#include "tool.h"
#include "waiting.h"

struct listing {
	const char *name, *forget;
	struct waiting w;
	struct places places;
	uint64_t nr_forgotten;
	bool failed, left; /* with --wait: something is still near */
};

static void print_json(const struct listing *l, const struct plfs_place *p)
{
	printf("{\"file\": ");
	tool_print_json(l->name);
	printf(", \"host\": ");
	tool_print_json(p->host);
	printf(", \"place\": ");
	tool_print_json(p->path);
	printf(", \"here\": %s, \"shared\": %s", p->here ? "true" : "false", p->shared ? "true" : "false");
	if (p->here)
		printf(", \"read_only\": %s, \"logs\": %llu, \"open\": %llu, \"bytes\": %llu",
		       p->read_only ? "true" : "false", (unsigned long long)p->nr_logs,
		       (unsigned long long)p->nr_open, (unsigned long long)p->bytes);
	puts("}");
}

static int print_place(void *arg, const struct plfs_place *p)
{
	struct listing *l = arg;
	char size[TOOL_SIZE_LEN];

	if (opt.json)
		print_json(l, p);
	else if (p->here)
		tool_print("%s: %s %s in %s: %llu logs (%llu open), %s%s", l->name,
			   p->shared ? "shared, of" : "on", p->host, p->path, (unsigned long long)p->nr_logs,
			   (unsigned long long)p->nr_open, tool_size(p->bytes, size),
			   p->read_only ? ", read-only" : "");
	else if (p->shared)
		tool_print("%s: shared, of %s in %s: not there, or cannot be read", l->name, p->host,
			   p->path);
	else
		tool_print("%s: on %s in %s: not on this host, or gone", l->name, p->host, p->path);
	return 0;
}

static int list_top(void *arg, struct top *top, struct plfs_mount *m)
{
	struct listing *l = arg;

	if (l->w.waits) {
		tool_error("%s: a place: plfs drain --wait waits for all that is in it", top->path);
		l->failed = true;
		return 0;
	}
	if (opt.json) {
		printf("{\"place\": ");
		tool_print_json(top->path);
		printf(", \"backend\": ");
		tool_print_json(top->home);
		printf(", \"reachable\": %s}\n", m ? "true" : "false");
	} else {
		tool_print("%s: of the backend %s%s", top->path, top->home, m ? "" : ", which is not there");
	}
	return 0;
}

static int forget(struct listing *l, const char *path, struct plfs_mount *m)
{
	unsigned nr = 0;
	int ret = plfs_places_forget(m, AT_FDCWD, path, l->forget, &nr);

	if (ret == -EBUSY && strchr(l->forget, '/'))
		tool_error("%s: %s is there: nothing is given up", l->name, l->forget);
	else if (ret == -EBUSY)
		tool_error("%s: the place of %s is on this host: run plfs drain", l->name, l->forget);
	else if (ret)
		tool_error("%s: whether %s is there cannot be told, so nothing is given up: %s", l->name,
			   l->forget, strerror(-ret));
	else if (!nr && !l->places.walks)
		tool_error("%s: has nothing on %s", l->name, l->forget);
	else if (nr && !opt.quiet)
		tool_print("%s: what %s had is given up: plfs check lists what is lost", l->name, l->forget);
	l->nr_forgotten += !ret && nr;
	l->failed |= ret || (!nr && !l->places.walks);
	return 0;
}

/* A place here that has no log left is as good as gone; of one elsewhere only that host knows. */
static int find_logs(void *arg, const struct plfs_place *p)
{
	(void)arg;
	return !p->shared && (!p->here || p->nr_logs);
}

/* 1: the time is over; what is left is listed then. */
static int wait_for(struct listing *l, const char *path, struct plfs_mount *m)
{
	int ret;

	waiting_restart(&l->w);
	do
		ret = plfs_places_of(m, AT_FDCWD, path, find_logs, l);
	while (ret > 0 && waiting_pause(&l->w));
	l->left |= ret > 0;
	return ret;
}

static int print_parity(void *arg, const struct plfs_parity *p)
{
	const struct listing *l = arg;
	char size[TOOL_SIZE_LEN], missing[60] = "";

	if (opt.json) {
		printf("{\"file\": ");
		tool_print_json(l->name);
		printf(", \"place\": ");
		tool_print_json(p->path);
		printf(", \"here\": %s, \"parity\": %llu, \"missing\": %llu, \"bytes\": %llu}\n",
		       p->here ? "true" : "false", (unsigned long long)p->nr,
		       (unsigned long long)p->nr_missing, (unsigned long long)p->bytes);
		return 0;
	}
	if (p->nr_missing)
		snprintf(missing, sizeof(missing), ", %llu are missing", (unsigned long long)p->nr_missing);
	if (p->here)
		tool_print("%s: parity in %s: %llu files, %s%s", l->name, p->path, (unsigned long long)p->nr,
			   tool_size(p->bytes, size), missing);
	else
		tool_print("%s: parity in %s: not there, or cannot be read", l->name, p->path);
	return 0;
}

static int list_staged(struct listing *l, const char *path, struct plfs_mount *m)
{
	char size[TOOL_SIZE_LEN];
	uint64_t nr, bytes;
	int ret = plfs_staged_of(m, AT_FDCWD, path, &nr, &bytes);

	if (ret || !nr)
		return ret;
	if (opt.json) {
		printf("{\"file\": ");
		tool_print_json(l->name);
		printf(", \"staged\": %llu, \"bytes\": %llu}\n", (unsigned long long)nr,
		       (unsigned long long)bytes);
	} else {
		tool_print("%s: %llu logs staged on this node, %s", l->name, (unsigned long long)nr,
			   tool_size(bytes, size));
	}
	return 0;
}

static int list_one(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	struct listing *l = arg;
	int ret;

	l->name = name;
	if (l->forget)
		return forget(l, path, m);
	ret = l->w.waits ? wait_for(l, path, m) : 1;
	if (ret > 0)
		ret = plfs_places_of(m, AT_FDCWD, path, print_place, l);
	if (!ret && !l->w.waits)
		ret = plfs_parity_of(m, AT_FDCWD, path, print_parity, l);
	if (!ret && !l->w.waits)
		ret = list_staged(l, path, m);
	if (ret < 0 && !(ret == -ENOENT && l->places.walks)) {
		tool_error("%s: %s", name, strerror(-ret));
		l->failed = true;
	}
	return 0;
}

static int run_places(const struct verb *v, int argc, char **argv)
{
	struct listing l = { .name = "", .places = { .top = list_top, .file = list_one, .arg = &l } };
	struct naming names = { .lists = false };
	bool is_auto = false;
	int c, ret, nr_alone;

	while ((c = options_next(v, argc, argv)) != -1) {
		if (c == OPT_FORGET)
			l.forget = optarg;
		if (c == OPT_ADD)
			names.add = optarg;
		if (c == OPT_REMOVE)
			names.remove = optarg;
		names.lists |= c == OPT_NAMES;
		is_auto |= c == OPT_AUTO;
		l.places.recursive |= c == 'r';
		waiting_take(&l.w, v, c);
	}
	nr_alone = is_auto + names.lists + !!names.add + !!names.remove;
	if (nr_alone > 1 || (nr_alone && (l.forget || l.w.waits)))
		return tool_misuse(v->name, "each of --auto, --names, --add and --remove goes with no other option");
	if (is_auto)
		return auto_explain(argv + optind, argc - optind);
	if (optind == argc)
		return tool_misuse(v->name, nr_alone ? "no backend given" : "no place and no file given");
	if (nr_alone)
		return naming_run(&names, argv + optind, argc - optind);
	if (l.forget && l.w.waits)
		return tool_misuse(v->name, "--forget does not wait");
	ret = waiting_begin(&l.w, v);
	if (ret)
		return ret;
	l.places.names = argv + optind;
	l.places.nr = l.places.nr_given = argc - optind;
	ret = places_each(&l.places);
	if (!ret && l.forget && l.places.recursive && !l.nr_forgotten && !l.failed) {
		tool_error("%s: has nothing on %s", argv[optind], l.forget);
		l.failed = true;
	}
	return tool_finish(ret || l.failed ? TOOL_FAILED : l.left ? DRAIN_LEFT : TOOL_OK);
}

const struct verb verb_places = {
	.name = "places",
	.run = run_places,
	.what = "show what of a file is in node-local places and other backends",
	.arguments = "NEAR|FILE|DIRECTORY...\n--auto [BACKEND...]\n--names BACKEND...\n"
		     "--add NAME=DIR BACKEND...\n--remove NAME BACKEND...",
	.about = "Show in which places logs of files are (near= in libplfs(7)), or of which backends NEAR has some.\n",
	.end = "Exit status: 0 all was shown, given up, or flushed; 75 the time is over;\n"
	       "1 something could not be done.\n",
	.options = (const struct verb_option[]){
		{ 'r', "recursive", NULL, "take directories for all below them, up to whole backends" },
		{ OPT_AUTO, "auto", NULL, "explain what near=auto takes on this node" },
		{ OPT_NAMES, "names", NULL, "list the places of the backend for near=NAME" },
		{ OPT_ADD, "add", "NAME=DIR",
		  "from now on near=NAME is the directory DIR; variables in it, as $TMPDIR, are\nthose of the program" },
		{ OPT_REMOVE, "remove", "NAME", "there is no near=NAME any more" },
		{ OPT_FORGET, "forget", "HOST|BACKEND",
		  "give up on what the files have on HOST, or in BACKEND, which is lost" },
		{ OPT_WAIT, "wait", NULL, "wait until no log of the files is in a place, on any host" },
		{ OPT_TIMEOUT, "timeout", "SECONDS", "with --wait: so long at most" },
		{ 0 },
	},
};
