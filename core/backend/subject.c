/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors of this process are searched for the stub that has the container's id in its header. No
 * table is kept for this: an error is rare, and is not repeated for ten seconds.
 */
#include "core/backend/subject.h"

#include "core/backend/mount.h"
#include "core/backend/stub.h"
#include "core/base/alloc.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_AT (sizeof(PLFS_DIR_NAME "/3f/") - 1)

struct search {
	const char *id; /* its digits */
	char path[PATH_MAX], seen[PATH_MAX];
	char names[DIRS_LIST_LEN] __attribute__((aligned(8)));
};

static bool has_id(const struct stub *stub, const char *id)
{
	char digits[3];

	for (int i = 0; i < STUB_ID_LEN; i++) {
		snprintf(digits, sizeof(digits), "%02x", stub->id[i]);
		if (memcmp(digits, id + 2 * i, 2))
			return false;
	}
	return true;
}

static int look_at_fd(void *arg, int dir, const char *name, unsigned char type)
{
	struct search *s = arg;
	uint8_t head[STUB_HEADER_LEN];
	int fd = atoi(name);
	struct stub stub;
	struct stat st;

	(void)dir, (void)type;
	if (*name == '.' || sys.fstat(fd, &st) || !S_ISREG(st.st_mode) || !stub_marked(st.st_mode) ||
	    !mount_has_dev(st.st_dev) || io_pread_all(fd, head, sizeof(head), 0) != sizeof(head) ||
	    stub_decode(&stub, head, sizeof(head)) || !stub.has_container || !has_id(&stub, s->id))
		return 0;
	stub_name(fd, s->path, sizeof(s->path));
	return 1;
}

/* s->path: of an open stub of the container that @line begins with. */
static bool find_open(struct search *s, const char *line)
{
	int fd, ret;

	s->id = line + ID_AT;
	if (strlen(line) < ID_AT || strspn(s->id, "0123456789abcdef") != 2 * STUB_ID_LEN)
		return false;
	fd = io_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	ret = fd < 0 ? fd : dirs_list_by(fd, s->names, look_at_fd, s);
	sys_fd_close(&fd);
	return ret == 1;
}

/* s->path: what @line begins with, if that is a path on a backend. Returns its length; 0: it is none. */
static size_t take_path(struct search *s, const char *line)
{
	const char *end = *line == '/' ? strstr(line, ": ") : NULL;

	if (!end || (size_t)(end - line) >= sizeof(s->path))
		return 0;
	snprintf(s->path, sizeof(s->path), "%.*s", (int)(end - line), line);
	return mount_of_backend_path(s->path) ? (size_t)(end - line) : 0;
}

bool subject_find(const char *line, char *name, size_t len, size_t *skip)
{
	bool is_container = !strncmp(line, PLFS_DIR_NAME "/", sizeof(PLFS_DIR_NAME)), found;
	int saved ERRNO_KEPT = errno;
	struct search *s;

	*skip = 0;
	if (!is_container && *line != '/')
		return false;
	s = mem_alloc(sizeof(*s)); /* the stack may be small */
	if (!s)
		return false;
	if (!is_container)
		*skip = take_path(s, line);
	found = is_container ? find_open(s, line) : *skip;
	if (found)
		snprintf(name, len, "%s", mount_path_unmap(s->path, s->seen) == 1 ? s->seen : s->path);
	mem_free(s);
	return found;
}
