/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fts. The C library's own walks the backend; the program gets entries of ours, one beside each of the
 * library's, with the names that it knows, the sizes of logical files, and without the container directory.
 * The library's entries stay as they are, since it goes on using them; each points to ours with its
 * fts_pointer.
 */
#include "path.h"
#include "proc.h"
#include "through.h"

#include <fts.h>
#include <pthread.h>
#include <stdlib.h>

struct root {
	char *given;
	char *real; /* what the library was given instead */
};

struct entry {
	struct entry *next, **prev;
	FTSENT *real;
	const struct root *root; /* that it lies below, or is; NULL: above them */
	struct stat st;
	FTSENT shown; /* last: its name may be longer than its type says */
};

struct walk {
	FTS shown; /* what the program holds */
	struct walk *next;
	FTS *real;
	int options;
	int (*compar)(const FTSENT **, const FTSENT **);
	struct entry *entries;
	struct entry *last; /* what fts_read() returned */
	char *path;         /* what fts_path points to */
	size_t room;
	size_t nr_roots;
	struct root *roots;
};

static pthread_mutex_t walks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct walk *walks;

/* The walk inside whose real call this thread is: the comparison function has no argument to pass it in. */
static __thread struct walk *comparing __attribute__((tls_model("initial-exec")));

void fts_fork_child(void) { pthread_mutex_init(&walks_lock, NULL); }

static struct walk *find_walk(const FTS *fts)
{
	struct walk *w;

	if (!__atomic_load_n(&walks, __ATOMIC_RELAXED))
		return NULL;
	mutex_lock(&walks_lock);
	for (w = walks; w && &w->shown != fts; w = w->next)
		;
	mutex_unlock(&walks_lock);
	return w;
}

/* ---- entries ---- */

/* How much of a root's path stays before "/name" is put behind it. */
static size_t stem_len(const char *path)
{
	size_t len = strlen(path);

	return len && path[len - 1] == '/' ? len - 1 : len;
}

/* The root whose entry @real is: to be asked before it is read, when its name still is all of the path. */
static const struct root *find_root(const struct walk *w, const FTSENT *real)
{
	size_t i;

	for (i = 0; i < w->nr_roots; i++)
		if (!strcmp(w->roots[i].real, real->fts_name))
			return &w->roots[i];
	return NULL;
}

/* The root's name as the program sees it: all that it gave at first, then the last component. */
static const char *root_name(const struct root *root, const FTSENT *real)
{
	const char *slash = strrchr(root->given, '/');

	if (!strcmp(root->real, real->fts_name) || !slash || (slash == root->given && !slash[1]))
		return root->given;
	return slash + 1;
}

static void set_name(struct entry *e)
{
	const bool is_root = e->root && e->real->fts_level == FTS_ROOTLEVEL;
	const char *name = is_root ? root_name(e->root, e->real) : e->real->fts_name;
	size_t len = strlen(name);

	memcpy(e->shown.fts_name, name, len + 1);
	e->shown.fts_namelen = (__typeof__(e->shown.fts_namelen))len;
}

static void set_paths(const struct walk *w, struct entry *e)
{
	const FTSENT *real = e->real;
	size_t len = real->fts_pathlen;

	if (e->root && real->fts_level == FTS_ROOTLEVEL)
		len = strlen(e->root->given);
	else if (e->root)
		len = len - stem_len(e->root->real) + stem_len(e->root->given);
	e->shown.fts_pathlen = (__typeof__(e->shown.fts_pathlen))len;
	e->shown.fts_path = w->path;
	if (real->fts_accpath == real->fts_path)
		e->shown.fts_accpath = w->path;
	else if (real->fts_accpath == real->fts_name || !e->shown.fts_parent)
		e->shown.fts_accpath = e->shown.fts_name;
	else /* that of the directory, which could not be entered */
		e->shown.fts_accpath = e->shown.fts_parent->fts_accpath;
}

static void set_stat(const struct walk *w, struct entry *e)
{
	const FTSENT *real = e->real;
	struct stat dir = {.st_mode = S_IFDIR, .st_dev = real->fts_dev, .st_ino = real->fts_ino,
		.st_nlink = real->fts_nlink};

	memset(&e->st, 0, sizeof(e->st));
	e->shown.fts_statp = &e->st;
	if (real->fts_info == FTS_NS || real->fts_info == FTS_NSOK || real->fts_level < FTS_ROOTLEVEL)
		return;
	if (real->fts_info == FTS_D || real->fts_info == FTS_DP) {
		plfs_fix_stat(&dir, NULL); /* may lose a link */
		e->shown.fts_nlink = dir.st_nlink;
	}
	if (w->options & FTS_NOSTAT)
		return;
	e->st = *real->fts_statp;
	plfs_fix_stat(&e->st, NULL);
}

/* Bring @e up to date with the library's entry. Names of others are not looked at, so any order will do. */
static void update(struct walk *w, struct entry *e)
{
	const FTSENT *real = e->real;
	FTSENT *shown = &e->shown;

	shown->fts_errno = real->fts_errno;
	shown->fts_symfd = real->fts_symfd;
	shown->fts_ino = real->fts_ino;
	shown->fts_dev = real->fts_dev;
	shown->fts_nlink = real->fts_nlink;
	shown->fts_level = real->fts_level;
	shown->fts_info = real->fts_info;
	shown->fts_flags = real->fts_flags;
	shown->fts_instr = real->fts_instr;
	set_name(e);
	set_paths(w, e);
	set_stat(w, e);
}

/* Our entry beside @real, made now if there is none yet; NULL: no memory. */
static struct entry *entry_of(struct walk *w, FTSENT *real)
{
	struct entry *e = real->fts_pointer, *parent = NULL;
	const struct root *root;
	size_t len;

	if (e)
		return e;
	if (real->fts_level > FTS_ROOTPARENTLEVEL) {
		parent = entry_of(w, real->fts_parent);
		if (!parent)
			return NULL;
	}
	root = real->fts_level == FTS_ROOTLEVEL ? find_root(w, real) : parent ? parent->root : NULL;
	len = real->fts_level == FTS_ROOTLEVEL && root ? strlen(root->given) : real->fts_namelen;
	e = calloc(1, sizeof(*e) + len + 1);
	if (!e)
		return NULL;
	e->real = real;
	e->root = root;
	e->shown.fts_parent = parent ? &parent->shown : NULL;
	e->prev = &w->entries;
	e->next = w->entries;
	if (e->next)
		e->next->prev = &e->next;
	w->entries = e;
	real->fts_pointer = e;
	update(w, e);
	return e;
}

static void entry_free(struct entry *e)
{
	*e->prev = e->next;
	if (e->next)
		e->next->prev = e->prev;
	free(e);
}

/* The container directory, which programs do not see. */
static bool is_hidden(const FTSENT *real)
{
	return real->fts_level > FTS_ROOTLEVEL && !strcmp(real->fts_name, PLFS_DIR_NAME) &&
	       plfs_is_root(real->fts_parent->fts_dev, real->fts_parent->fts_ino);
}

/* Have the program's path say where the library is, at @e. 0, or -1 and errno. */
static int set_path(struct walk *w, struct entry *e)
{
	const char *rest =
		e->real->fts_level > FTS_ROOTLEVEL ? e->real->fts_path + stem_len(e->root->real) : "";
	size_t stem = *rest ? stem_len(e->root->given) : strlen(e->root->given),
	       len = stem + strlen(rest) + 1;
	struct entry *other;
	char *more;

	if (len > w->room) {
		more = realloc(w->path, 2 * len);
		if (!more)
			return -1;
		for (other = w->entries; other; other = other->next) {
			if (other->shown.fts_accpath == w->path)
				other->shown.fts_accpath = more;
			other->shown.fts_path = more;
		}
		w->path = more;
		w->room = 2 * len;
	}
	memcpy(w->path, e->root->given, stem);
	strcpy(w->path + stem, rest);
	return 0;
}

/* ---- the calls ---- */

/* Around a real call: the comparison function may be called, and the working directory may change. */
static struct walk *real_begin(struct walk *w)
{
	struct walk *outer = comparing;

	comparing = w;
	return outer;
}

static void real_end(const struct walk *w, struct walk *outer)
{
	comparing = outer;
	if (!(w->options & (FTS_NOCHDIR | FTS_LOGICAL)))
		path_cwd_changed();
}

static int compare(const FTSENT **a, const FTSENT **b)
{
	struct entry *x = entry_of(comparing, (FTSENT *)*a), *y = entry_of(comparing, (FTSENT *)*b);
	const FTSENT *shown_x, *shown_y;

	if (!x || !y)
		return strcmp((*a)->fts_name, (*b)->fts_name);
	shown_x = &x->shown;
	shown_y = &y->shown;
	return comparing->compar(&shown_x, &shown_y);
}

static void walk_free(struct walk *w)
{
	int saved ERRNO_KEPT = errno;
	size_t i;

	while (w->entries)
		entry_free(w->entries);
	for (i = 0; i < w->nr_roots; i++) {
		free(w->roots[i].given);
		free(w->roots[i].real);
	}
	free(w->roots);
	free(w->path);
	free(w);
}

/* Find out what to give to the library instead of @paths. The list that it gets, to be freed, or NULL. */
static char **find_roots(struct walk *w, char *const *paths)
{
	struct where where;
	size_t nr = 0;
	char **list;

	while (paths[nr])
		nr++;
	list = calloc(nr + 1, sizeof(*list));
	w->roots = calloc(nr + 1, sizeof(*w->roots));
	for (; list && w->roots && w->nr_roots < nr; w->nr_roots++) {
		struct root *root = &w->roots[w->nr_roots];
		bool nowhere = path_find(&where, AT_FDCWD, paths[w->nr_roots]) == -ENOENT;

		root->given = strdup(paths[w->nr_roots]);
		root->real = strdup(nowhere ? "/proc/self/fd/none" : where.path);
		if (!root->given || !root->real) {
			free(root->given);
			free(root->real);
			break;
		}
		list[w->nr_roots] = root->real;
	}
	if (list && w->roots && w->nr_roots == nr)
		return list;
	free(list);
	return NULL;
}

/* The real fts_open(), and entries for all roots while they still have all of their names. */
static int walk_begin(struct walk *w, char *const *list)
{
	struct walk *outer = real_begin(w);
	FTSENT *real;

	w->path = calloc(1, PATH_MAX);
	w->room = PATH_MAX;
	w->real = w->path ? sys.fts_open(list, w->options, w->compar ? compare : NULL) : NULL;
	real_end(w, outer);
	if (!w->real)
		return -1;
	for (real = w->real->fts_cur->fts_link; real; real = real->fts_link) {
		if (entry_of(w, real))
			continue;
		sys.fts_close(w->real);
		return -1;
	}
	return 0;
}

static FTS *open_ours(char *const *paths, int options, int (*compar)(const FTSENT **, const FTSENT **))
{
	struct walk *w = calloc(1, sizeof(*w));
	char **list;
	int r;

	if (!w)
		return NULL;
	w->options = w->shown.fts_options = options;
	w->compar = compar;
	list = find_roots(w, paths);
	r = list ? walk_begin(w, list) : -1;
	if (r)
		walk_free(w);
	free(list);
	if (r)
		return NULL;
	mutex_lock(&walks_lock);
	w->next = walks;
	__atomic_store_n(&walks, w, __ATOMIC_RELAXED);
	mutex_unlock(&walks_lock);
	return &w->shown;
}

/* Whether the walk can meet a mount: it starts near one, or follows links to wherever they lead. */
static bool may_meet_mount(char *const *paths, int options)
{
	if (!shim_on())
		return false;
	for (; *paths; paths++) {
		if ((options & FTS_LOGICAL) || path_is_near_mount(*paths))
			return true;
	}
	return false;
}

EXPORT FTS *fts_open(char *const *paths, int options, int (*compar)(const FTSENT **, const FTSENT **))
{
	return may_meet_mount(paths, options) ? open_ours(paths, options, compar) :
	                                        sys.fts_open(paths, options, compar);
}
ALIAS64(fts64_open, fts_open);

/*
 * The library has moved on to @real: it has freed what it was at before, unless that is where it still is, or
 * is in.
 */
static void moved_on(struct walk *w, const FTSENT *real)
{
	struct entry *e = w->last;

	w->last = NULL;
	if (e && e->real != real && e->real != real->fts_parent)
		entry_free(e);
}

static FTSENT *read_ours(struct walk *w)
{
	struct walk *outer = real_begin(w);
	struct where link = {.dirfd = AT_FDCWD};
	struct entry *e;
	FTSENT *real;

	while ((real = sys.fts_read(w->real)) && is_hidden(real)) {
		if (real->fts_info == FTS_D)
			sys.fts_set(w->real, real, FTS_SKIP);
	}
	real_end(w, outer);
	if (!real)
		return NULL;
	moved_on(w, real);
	e = entry_of(w, real);
	if (!e || set_path(w, e))
		return NULL;
	update(w, e);
	link.path = real->fts_accpath;
	if (S_ISLNK(e->st.st_mode))
		e->st.st_size = path_shown_link_len(&link, e->st.st_size);
	if (real->fts_info == FTS_DC && real->fts_cycle->fts_pointer)
		e->shown.fts_cycle = &entry_of(w, real->fts_cycle)->shown;
	w->last = e;
	return &e->shown;
}

EXPORT FTSENT *fts_read(FTS *fts)
{
	struct walk *w = find_walk(fts);

	return w ? read_ours(w) : sys.fts_read(fts);
}
ALIAS64(fts64_read, fts_read);

static FTSENT *children_ours(struct walk *w, int instr)
{
	struct walk *outer = real_begin(w);
	FTSENT *real = sys.fts_children(w->real, instr), *first = NULL, **end = &first;
	struct entry *e;

	real_end(w, outer);
	for (; real; real = real->fts_link) {
		if (is_hidden(real))
			continue;
		e = entry_of(w, real);
		if (!e)
			return NULL;
		update(w, e);
		*end = &e->shown;
		end = &e->shown.fts_link;
	}
	*end = NULL;
	return first;
}

EXPORT FTSENT *fts_children(FTS *fts, int instr)
{
	struct walk *w = find_walk(fts);

	return w ? children_ours(w, instr) : sys.fts_children(fts, instr);
}
ALIAS64(fts64_children, fts_children);

EXPORT int fts_set(FTS *fts, FTSENT *shown, int instr)
{
	struct walk *w = find_walk(fts);
	int r;

	if (!w)
		return sys.fts_set(fts, shown, instr);
	r = sys.fts_set(w->real, container_of(shown, struct entry, shown)->real, instr);
	if (!r)
		shown->fts_instr = (__typeof__(shown->fts_instr))instr;
	return r;
}
ALIAS64(fts64_set, fts_set);

EXPORT int fts_close(FTS *fts)
{
	struct walk *w = find_walk(fts), **at;
	int r;

	if (!w)
		return sys.fts_close(fts);
	mutex_lock(&walks_lock);
	for (at = &walks; *at != w; at = &(*at)->next)
		;
	__atomic_store_n(at, w->next, __ATOMIC_RELAXED);
	mutex_unlock(&walks_lock);
	r = sys.fts_close(w->real);
	real_end(w, comparing);
	walk_free(w);
	return r;
}
ALIAS64(fts64_close, fts_close);
