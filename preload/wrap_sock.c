/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets that have a name in the file system, and descriptors that travel through sockets. The kernel keeps
 * a name as it was bound, on the backend; it is shown as programs spell it.
 */
#include "adopt.h"
#include "fdtable.h"
#include "path.h"

#include <stddef.h>
#include <sys/un.h>

#define NAME_OFF offsetof(struct sockaddr_un, sun_path)
#define MESSAGES_MAX 1024 /* what the kernel takes in one call: UIO_MAXIOV */

static bool has_path(const struct sockaddr_un *un, socklen_t len)
{
	return len > NAME_OFF && len <= sizeof(*un) && user_has_bytes(un, len) && un->sun_family == AF_UNIX &&
	       un->sun_path[0];
}

/* What the program says there is room for; the kernel judges a bad address. */
static socklen_t room_at(const socklen_t *len) { return user_has_bytes(len, sizeof(*len)) ? *len : 0; }

/* An address for the kernel, when it is not the caller's own. */
struct name {
	struct sockaddr_un un;
	int dirfd; /* the directory, held open while a name goes by way of it; or -1 */
};

static void name_put(struct name *n) { sys_fd_close(&n->dirfd); }

/* @path is too long for an address: go by way of a descriptor of its directory. 0 or -errno. */
static int name_by_dir(struct name *n, const char *path)
{
	const char *last = strrchr(path, '/') + 1;
	char dir[PATH_MAX];

	memcpy(dir, path, (size_t)(last - path));
	dir[last - path] = '\0';
	n->dirfd = sys_fd_hide(sys.open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (n->dirfd < 0)
		return -errno;
	if (snprintf(n->un.sun_path, sizeof(n->un.sun_path), "/proc/self/fd/%d/%s", n->dirfd, last) <
	    (int)sizeof(n->un.sun_path))
		return 0;
	name_put(n);
	msg_debug(MSG_REFUSE,
		  "socket %s: its name on the backend is too long for an address; use a shorter one", path);
	return -ENAMETOOLONG;
}

/*
 * If the address @un of *@len bytes names a socket whose path the kernel needs otherwise, write it to @out
 * and let *@len follow. Returns the address to use, or NULL and the -errno in *@err. name_put() after the
 * call.
 */
static const struct sockaddr *find_name(const void *un, socklen_t *len, struct name *out, int *err)
{
	char name[sizeof(out->un.sun_path) + 1];
	const char *path = ((const struct sockaddr_un *)un)->sun_path;
	struct where w;
	size_t n;

	out->dirfd = -1;
	if (!shim_on() || !has_path(un, *len))
		return un;
	n = strnlen(path, *len - NAME_OFF);
	memcpy(name, path, n);
	name[n] = '\0';
	*err = path_find(&w, AT_FDCWD, name);
	if (*err)
		return NULL;
	if (w.path == name)
		return un;
	n = strlen(w.path);
	out->un.sun_family = AF_UNIX;
	if (n < sizeof(out->un.sun_path))
		memcpy(out->un.sun_path, w.path, n + 1);
	else
		*err = name_by_dir(out, w.path);
	if (*err)
		return NULL;
	*len = (socklen_t)(NAME_OFF + strlen(out->un.sun_path) + 1);
	return (const struct sockaddr *)&out->un;
}

/* The result of a call with a name from find_name(): @to NULL, there was none. */
static long named(long ret, const struct sockaddr *to, struct name *n, int err)
{
	if (!to)
		return done(err);
	name_put(n);
	return ret;
}

/*
 * The kernel put the address @un of *@len bytes where there is room for @room: show it as programs spell it.
 */
static void show_name(struct sockaddr_un *un, socklen_t *len, socklen_t room)
{
	char shown[PATH_MAX];
	size_t n;

	if (!shim_active || *len > room || !has_path(un, *len))
		return;
	n = path_show(un->sun_path, strnlen(un->sun_path, *len - NAME_OFF), shown);
	if (!n)
		return;
	*len = (socklen_t)(NAME_OFF + n + 1);
	memcpy(un->sun_path, shown, *len > room ? room - NAME_OFF : n + 1);
}

EXPORT int bind(int sock, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct name buf;
	const struct sockaddr *to;
	int err;

	if (!addr.__sockaddr__)
		return sys.bind(sock, NULL, len);
	to = find_name(addr.__sockaddr__, &len, &buf, &err);
	return (int)named(to ? sys.bind(sock, to, len) : -1, to, &buf, err);
}

EXPORT int connect(int sock, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	struct name buf;
	const struct sockaddr *to;
	int err;

	if (!addr.__sockaddr__)
		return sys.connect(sock, NULL, len);
	to = find_name(addr.__sockaddr__, &len, &buf, &err);
	return (int)named(to ? sys.connect(sock, to, len) : -1, to, &buf, err);
}
ALIAS(__connect, connect);

EXPORT ssize_t sendto(int sock, const void *data, size_t size, int flags, __CONST_SOCKADDR_ARG addr,
                      socklen_t len)
{
	struct name buf;
	const struct sockaddr *to;
	int err;

	if (!addr.__sockaddr__)
		return sys.sendto(sock, data, size, flags, NULL, len);
	to = find_name(addr.__sockaddr__, &len, &buf, &err);
	return named(to ? sys.sendto(sock, data, size, flags, to, len) : -1, to, &buf, err);
}

/* ---- names that come back ---- */

/* @ret of a call that had @room bytes at @addr for a name. */
static long shown(long ret, struct sockaddr *addr, socklen_t *len, socklen_t room)
{
	if (ret >= 0 && addr && len)
		show_name((struct sockaddr_un *)addr, len, room);
	return ret;
}

EXPORT int getsockname(int sock, __SOCKADDR_ARG addr, socklen_t *restrict len)
{
	socklen_t room = room_at(len);

	return (int)shown(sys.getsockname(sock, addr.__sockaddr__, len), addr.__sockaddr__, len, room);
}

EXPORT int getpeername(int sock, __SOCKADDR_ARG addr, socklen_t *restrict len)
{
	socklen_t room = room_at(len);

	return (int)shown(sys.getpeername(sock, addr.__sockaddr__, len), addr.__sockaddr__, len, room);
}

EXPORT int accept(int sock, __SOCKADDR_ARG addr, socklen_t *restrict len)
{
	socklen_t room = room_at(len);

	return (int)shown(sys.accept(sock, addr.__sockaddr__, len), addr.__sockaddr__, len, room);
}

EXPORT int accept4(int sock, __SOCKADDR_ARG addr, socklen_t *restrict len, int flags)
{
	socklen_t room = room_at(len);

	return (int)shown(sys.accept4(sock, addr.__sockaddr__, len, flags), addr.__sockaddr__, len, room);
}

EXPORT ssize_t recvfrom(int sock, void *restrict data, size_t size, int flags, __SOCKADDR_ARG addr,
                        socklen_t *restrict len)
{
	socklen_t room = room_at(len);

	return shown(sys.recvfrom(sock, data, size, flags, addr.__sockaddr__, len), addr.__sockaddr__, len,
		     room);
}

EXPORT ssize_t __recvfrom_chk(int sock, void *restrict data, size_t size, size_t data_room, int flags,
                              __SOCKADDR_ARG addr, socklen_t *restrict len)
{
	if (size > data_room)
		__chk_fail();
	return recvfrom(sock, data, size, flags, addr, len);
}

/* ---- messages: with a name, and with descriptors ---- */

/* Call @fn for each descriptor in the control data of @msg. */
static void each_sent_fd(const struct msghdr *msg, void (*fn)(int fd))
{
	struct cmsghdr *c;
	size_t i, nr;
	int fd;

	if (!msg->msg_controllen || !user_has_bytes(msg->msg_control, msg->msg_controllen))
		return;
	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR((struct msghdr *)msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN(0))
			continue;
		nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < nr; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			fn(fd);
		}
	}
}

static void share_sent(int fd)
{
	struct ofile *f = fd_find(fd);

	if (!f)
		return;
	ofile_share(f, fd);
	plfs_share(f->file);
	fd_put(f);
}

EXPORT ssize_t sendmsg(int sock, const struct msghdr *msg, int flags)
{
	struct name buf;
	struct msghdr sent;
	const struct sockaddr *to;
	int err;

	if (!shim_on() || !user_has_bytes(msg, sizeof(*msg)))
		return sys.sendmsg(sock, msg, flags);
	each_sent_fd(msg, share_sent);
	if (!has_path(msg->msg_name, msg->msg_namelen))
		return sys.sendmsg(sock, msg, flags);
	sent = *msg;
	to = find_name(msg->msg_name, &sent.msg_namelen, &buf, &err);
	sent.msg_name = (void *)to;
	return named(to ? sys.sendmsg(sock, &sent, flags) : -1, to, &buf, err);
}

EXPORT ssize_t recvmsg(int sock, struct msghdr *msg, int flags)
{
	bool on = shim_on();
	socklen_t room = on && user_has_bytes(msg, sizeof(*msg)) ? msg->msg_namelen : 0;
	ssize_t ret = sys.recvmsg(sock, msg, flags);

	if (ret >= 0 && on) {
		each_sent_fd(msg, fd_adopt);
		show_name(msg->msg_name, &msg->msg_namelen, room);
	}
	return ret;
}

/* Some with names, each for itself: to have sent fewer than all is no error. */
static int send_each(int sock, struct mmsghdr *msgs, unsigned nr, int flags)
{
	unsigned i;
	ssize_t ret = 0;

	for (i = 0; i < nr && i < MESSAGES_MAX; i++) {
		if (!user_has_bytes(msgs + i, sizeof(*msgs))) {
			errno = EFAULT;
			ret = -1;
			break;
		}
		ret = sendmsg(sock, &msgs[i].msg_hdr, flags);
		if (ret < 0)
			break;
		msgs[i].msg_len = (unsigned)ret;
	}
	return i || ret >= 0 ? (int)i : -1;
}

EXPORT int sendmmsg(int sock, struct mmsghdr *msgs, unsigned nr, int flags)
{
	unsigned i;

	for (i = 0; shim_on() && i < nr && user_has_bytes(msgs + i, sizeof(*msgs)); i++) {
		if (has_path(msgs[i].msg_hdr.msg_name, msgs[i].msg_hdr.msg_namelen))
			return send_each(sock, msgs, nr, flags);
		each_sent_fd(&msgs[i].msg_hdr, share_sent);
	}
	return sys.sendmmsg(sock, msgs, nr, flags);
}

EXPORT int recvmmsg(int sock, struct mmsghdr *msgs, unsigned nr, int flags, struct timespec *timeout)
{
	socklen_t rooms[MESSAGES_MAX];
	bool on = shim_on();
	int i, ret;

	for (i = 0; on && i < MESSAGES_MAX && (unsigned)i < nr && user_has_bytes(msgs + i, sizeof(*msgs));
	     i++)
		rooms[i] = msgs[i].msg_hdr.msg_namelen;
	ret = sys.recvmmsg(sock, msgs, nr, flags, timeout);
	for (i = 0; on && i < ret && i < MESSAGES_MAX; i++) {
		struct msghdr *msg = &msgs[i].msg_hdr;

		each_sent_fd(msg, fd_adopt);
		show_name(msg->msg_name, &msg->msg_namelen, rooms[i]);
	}
	return ret;
}
