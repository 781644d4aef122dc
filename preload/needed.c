/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries below a mount that a program or another library is linked to. The loader opens them itself, long
 * before or far from us, and would find stubs; so they are made plain files before it comes. More are visited
 * than it will load: it stops at the first directory that has one.
 */
#include "needed.h"

#include "image.h"
#include "through.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#define DEPTH_MAX 8
#define VISITS_MAX 100
#define HEADERS_MAX 64
#define STRINGS_MAX ((size_t)4 << 20)

/* An object, and what it says about where its libraries are. Below it in the tree are those that it needs. */
struct object {
	const struct object *parent;
	const char *path;    /* as found */
	const char *rpath;   /* also for what its libraries need; NULL: none */
	const char *runpath; /* for its own only; NULL: none */
};

struct walk {
	const char *env; /* LD_LIBRARY_PATH, or NULL */
	int visits;
};

static void visit(struct walk *walk, const struct object *parent, const char *path, int depth);

/* ---- places ---- */

/*
 * @dir (@dir_len bytes) and @name with $ORIGIN filled in, into @out (PATH_MAX). False: too long, or something
 * else to fill in.
 */
static bool expand(const char *origin_of, const char *dir, size_t dir_len, const char *name, char *out)
{
	static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(origin_of, '/');
	size_t origin_len = slash ? (size_t)(slash - origin_of) : 1, skip = 0, i;
	int n;

	for (i = 0; i < ARRAY_SIZE(tokens); i++) {
		if (dir_len >= strlen(tokens[i]) && !memcmp(dir, tokens[i], strlen(tokens[i])))
			skip = strlen(tokens[i]);
	}
	if (memchr(dir + skip, '$', dir_len - skip))
		return false;
	n = snprintf(out, PATH_MAX, "%.*s%.*s%s%s", skip ? (int)origin_len : 0, slash ? origin_of : ".",
		     (int)(dir_len - skip), dir + skip, dir_len && *name ? "/" : "", name);
	return n > 0 && n < PATH_MAX;
}

static void make_plain(struct walk *walk, const struct object *by, const char *path, int depth)
{
	struct where w;
	struct stat st;

	if (path_find(&w, AT_FDCWD, path) || path_through(&w, 0) || !w.m ||
	    sys.fstatat(w.dirfd, w.path, &st, 0) || !S_ISREG(st.st_mode))
		return;
	if (plfs_is_stub(&st, w.dirfd, w.path, 0))
		plfs_flatten(w.dirfd, w.path, NULL);
	visit(walk, by, w.path, depth + 1);
}

/* Look for @name in the directories of @list; @origin is the object whose list it is. */
static void look_in(struct walk *walk, const struct object *by, const char *list, const char *origin,
		    const char *name, int depth)
{
	char path[PATH_MAX];

	while (list && *list) {
		size_t len = strcspn(list, ":;");

		if (expand(origin, list, len, name, path))
			make_plain(walk, by, path, depth);
		list += len + (list[len] != '\0');
	}
}

static void look_for(struct walk *walk, const struct object *by, const char *name, int depth)
{
	const struct object *o;
	char path[PATH_MAX];

	if (strchr(name, '/')) {
		if (expand(by->path, name, strlen(name), "", path))
			make_plain(walk, by, path, depth);
		return;
	}
	for (o = by; o && !by->runpath; o = o->parent)
		look_in(walk, by, o->rpath, o->path, name, depth);
	look_in(walk, by, walk->env, by->path, name, depth);
	look_in(walk, by, by->runpath, by->path, name, depth);
}

/* ---- files ---- */

struct elf {
	int fd;
	struct plfs_file *file; /* NULL: plain */
	ElfW(Phdr) headers[HEADERS_MAX];
	unsigned nr_headers;
	ElfW(Dyn) *dynamic;
	size_t nr_dynamic;
	char *strings;
	size_t strings_len;
};

static bool get(const struct elf *e, void *buf, size_t len, uint64_t off)
{
	ssize_t n =
		e->file ? plfs_pread(e->file, buf, len, (off_t)off) : sys.pread(e->fd, buf, len, (off_t)off);

	return n == (ssize_t)len;
}

/* Where in the file the address is; 0: nowhere. */
static uint64_t offset_of(const struct elf *e, uint64_t addr)
{
	const ElfW(Phdr) *p;

	for (p = e->headers; p < e->headers + e->nr_headers; p++) {
		if (p->p_type == PT_LOAD && addr >= p->p_vaddr && addr - p->p_vaddr < p->p_filesz)
			return addr - p->p_vaddr + p->p_offset;
	}
	return 0;
}

static uint64_t value_of(const struct elf *e, ElfW(Sxword) tag)
{
	const ElfW(Dyn) *d;

	for (d = e->dynamic; d < e->dynamic + e->nr_dynamic; d++) {
		if (d->d_tag == tag)
			return d->d_un.d_val;
	}
	return 0;
}

/* The string that starts at @off of the table; they all end, for the table does. */
static const char *string_of(const struct elf *e, uint64_t off)
{
	return off && off < e->strings_len ? e->strings + off : NULL;
}

/* Read what says where libraries are. False: this is no object of this machine, or it is not whole. */
static bool elf_read(struct elf *e)
{
	const ElfW(Phdr) *p;
	ElfW(Ehdr) head;
	size_t len = 0;

	if (!get(e, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    head.e_phentsize != sizeof(*p) || head.e_phnum > HEADERS_MAX ||
	    !get(e, e->headers, head.e_phnum * sizeof(*p), head.e_phoff))
		return false;
	e->nr_headers = head.e_phnum;
	for (p = e->headers; p < e->headers + e->nr_headers && p->p_type != PT_DYNAMIC; p++)
		;
	if (p < e->headers + e->nr_headers && p->p_filesz <= STRINGS_MAX)
		len = p->p_filesz;
	e->dynamic = len ? mem_alloc(len) : NULL;
	if (!e->dynamic || !get(e, e->dynamic, len, p->p_offset))
		return false;
	e->nr_dynamic = len / sizeof(*e->dynamic);
	e->strings_len = value_of(e, DT_STRSZ);
	if (!e->strings_len || e->strings_len > STRINGS_MAX)
		return false;
	e->strings = mem_zalloc(e->strings_len + 1);
	return e->strings && get(e, e->strings, e->strings_len, offset_of(e, value_of(e, DT_STRTAB)));
}

static void look_for_all(struct walk *walk, const struct elf *e, const struct object *o, int depth)
{
	const ElfW(Dyn) *d;

	for (d = e->dynamic; d < e->dynamic + e->nr_dynamic; d++) {
		if (d->d_tag == DT_NEEDED && string_of(e, d->d_un.d_val))
			look_for(walk, o, string_of(e, d->d_un.d_val), depth);
	}
}

static void visit(struct walk *walk, const struct object *parent, const char *path, int depth)
{
	struct object o = {.parent = parent, .path = path};
	struct where w;
	struct elf *e;

	if (depth > DEPTH_MAX || ++walk->visits > VISITS_MAX || path_find(&w, AT_FDCWD, path))
		return;
	e = mem_zalloc(sizeof(*e));
	if (!e)
		return;
	e->fd = w.m ? plfs_open(w.m, w.dirfd, w.path, O_RDONLY | O_CLOEXEC, 0, &e->file)
	            : sys.openat(w.dirfd, w.path, O_RDONLY | O_CLOEXEC);
	if (e->fd >= 0 && elf_read(e)) {
		o.rpath = string_of(e, value_of(e, DT_RPATH));
		o.runpath = string_of(e, value_of(e, DT_RUNPATH));
	}
	if (e->fd >= 0)
		sys.close(e->fd);
	if (e->file)
		plfs_close(e->file);
	if (e->strings && (o.rpath || o.runpath || walk->env || parent))
		look_for_all(walk, e, &o, depth);
	mem_free(e->strings);
	mem_free(e->dynamic);
	mem_free(e);
}

/* ---- who asks ---- */

static const char *library_path(char *const envp[])
{
	static const char name[] = "LD_LIBRARY_PATH=";

	for (; envp && *envp; envp++) {
		if (!strncmp(*envp, name, sizeof(name) - 1))
			return *envp + sizeof(name) - 1;
	}
	return NULL;
}

bool needed_from_env(char *const envp[])
{
	const char *list = library_path(envp);
	char dir[PATH_MAX];
	struct where w;

	while (list && *list) {
		size_t len = strcspn(list, ":;");

		snprintf(dir, sizeof(dir), "%.*s", (int)min_size(len, sizeof(dir) - 1), list);
		if (!path_find(&w, AT_FDCWD, dir) && w.m)
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

void needed_by_file(const char *path, char *const envp[])
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct walk walk = {.env = library_path(envp)};

	visit(&walk, NULL, path, 0);
}

void needed_by_caller(const char *name, const void *caller)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct walk walk = {.env = library_path(environ)};
	struct object o = {.path = "/proc/self/exe"};
	const char *strings = NULL;
	const struct link_map *map = NULL;
	char exe[PATH_MAX];
	const ElfW(Dyn) *d;
	Dl_info info;
	ssize_t len;

	if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_ld)
		return;
	for (d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB) /* relocated, but where the section is read-only */
			strings = (const char *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr :
									       d->d_un.d_ptr);
	}
	for (d = map->l_ld; strings && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RPATH)
			o.rpath = strings + d->d_un.d_val;
		if (d->d_tag == DT_RUNPATH)
			o.runpath = strings + d->d_un.d_val;
	}
	if (!strchr(name, '/') && !o.rpath && !o.runpath && !walk.env)
		return;
	o.path = map->l_name;
	if (!*o.path) {
		len = sys.readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		exe[len > 0 ? len : 0] = '\0';
		o.path = exe;
	}
	look_for(&walk, &o, name, 0);
}
