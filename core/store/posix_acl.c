/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading access control lists, and making those of directories. The layout is that of the kernel's
 * posix_acl_xattr.h: a version, 2, of 4 bytes; then entries of a tag and permissions, 2 bytes each, and an id
 * of 4.
 */
#include "core/store/posix_acl.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/sys.h"

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

#define HEAD_LEN 4
#define ENTRY_LEN 8

enum { TAG_USER_OBJ = 1, TAG_USER = 2, TAG_GROUP_OBJ = 4, TAG_GROUP = 8, TAG_MASK = 16, TAG_OTHER = 32 };

static bool is_none(int err)
{
	return err == ENODATA || err == EOPNOTSUPP || err == ENOSYS;
}

ssize_t acl_get(int fd, void *buf)
{
	ssize_t n = sys.fgetxattr(fd, ACCESS, buf, ACL_LEN_MAX);

	if (n >= 0)
		return n;
	return is_none(errno) ? 0 : errno == ERANGE ? -E2BIG : -errno;
}

/*
 * Of a directory, for who has @perm of the file. Who may write a file and not read it cannot use it here at
 * all.
 */
static uint16_t dir_perm(uint16_t perm)
{
	return !(perm & 4) ? 0 : perm & 2 ? 7 : 5;
}

/* Of the lock. */
static uint16_t lock_perm(uint16_t perm) { return perm & 2 ? 6 : 0; }

/*
 * The mask, and what the owner and others get, leave it to the mode that something is made with. @owner, of
 * the file, is named: what others make in the directory is for him as well. Returns the length, one entry
 * more at most.
 */
static ssize_t make_list(uint8_t *to, const uint8_t *from, size_t len, uint32_t owner,
			 uint16_t (*perm_of)(uint16_t perm))
{
	const uint8_t *end = from + len;
	uint8_t *start = to;
	bool named = false;

	if (len < HEAD_LEN || (len - HEAD_LEN) % ENTRY_LEN || len > ACL_LEN_MAX || get_le32(from) != 2)
		return -EINVAL;
	memcpy(to, from, HEAD_LEN);
	to += HEAD_LEN;
	for (from += HEAD_LEN; from < end; from += ENTRY_LEN) {
		uint16_t tag = get_le16(from), perm = perm_of(get_le16(from + 2));

		/* Before what comes behind the users: the kernel wants an order. */
		if (tag == TAG_GROUP_OBJ && !named) {
			put_le16(to, TAG_USER);
			put_le16(to + 2, perm_of(7));
			put_le32(to + 4, owner);
			to += ENTRY_LEN;
		}
		memcpy(to, from, ENTRY_LEN);
		if (tag == TAG_USER && get_le32(from + 4) == owner) {
			named = true;
			perm = perm_of(7);
		}
		put_le16(to + 2, tag & (TAG_USER | TAG_GROUP | TAG_GROUP_OBJ) ? perm : 7);
		to += ENTRY_LEN;
	}
	return to - start;
}

static int drop(int fd, const char *name)
{
	return sys.fremovexattr(fd, name) && !is_none(errno) ? -errno : 0;
}

/* Make the list of @acl, and give it to @fd under both names, or one. The stack may be small. */
static int set(int fd, const char *name, const char *other, const void *acl, size_t len, uid_t owner,
	       uint16_t (*perm_of)(uint16_t perm))
{
	uint8_t *list = mem_alloc(ACL_LEN_MAX + ENTRY_LEN);
	ssize_t n = list ? make_list(list, acl, len, owner, perm_of) : -ENOMEM;

	if (n >= 0 && (sys.fsetxattr(fd, name, list, (size_t)n, 0) ||
		       (other && sys.fsetxattr(fd, other, list, (size_t)n, 0))))
		n = -errno;
	mem_free(list);
	return n < 0 ? (int)n : 0;
}

bool acl_is_there(int fd)
{
	ssize_t n = sys.fgetxattr(fd, ACCESS, NULL, 0);

	return n > 0 && n <= ACL_LEN_MAX;
}

int acl_group(int fd)
{
	uint8_t *list = mem_alloc(ACL_LEN_MAX);
	ssize_t n = list ? acl_get(fd, list) : -ENOMEM;
	int perm = n < 0 ? (int)n : -ENODATA;

	for (ssize_t at = HEAD_LEN; at + ENTRY_LEN <= n; at += ENTRY_LEN)
		if (get_le16(list + at) == TAG_GROUP_OBJ)
			perm = get_le16(list + at + 2) & 7;
	mem_free(list);
	return perm;
}

int acl_set(int fd, const void *acl, size_t len, uid_t owner, bool made)
{
	int ret;

	if (!len && made && sys.fgetxattr(fd, DEFAULT, NULL, 0) < 0 && is_none(errno))
		return 0; /* so it got none of the other kind either */
	if (!len) {
		ret = drop(fd, DEFAULT);
		return ret ? ret : drop(fd, ACCESS);
	}
	return set(fd, DEFAULT, ACCESS, acl, len, owner, dir_perm);
}

int acl_set_of_lock(int fd, const void *acl, size_t len, uid_t owner)
{
	return set(fd, ACCESS, NULL, acl, len, owner, lock_perm);
}
