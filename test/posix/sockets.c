/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unix domain sockets whose names lie in the directory of the case: bound, connected to, and asked for their
 * names.
 */
#include "posix.h"
#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *rel(const char *path)
{
	const char *p = getenv("P");
	size_t len = strlen(p);

	return strncmp(path, p, len) || path[len] != '/' ? path : path + len + 1;
}

static socklen_t address(struct sockaddr_un *un, const char *name)
{
	memset(un, 0, sizeof *un);
	un->sun_family = AF_UNIX;
	strncpy(un->sun_path, at(name), sizeof un->sun_path);
	return sizeof *un;
}

static void say_name(const char *what, const struct sockaddr_un *un, socklen_t len)
{
	say("%s: family %d length %d name %.*s\n", what, un->sun_family,
	    (int)(len - strnlen(un->sun_path, sizeof un->sun_path) - offsetof(struct sockaddr_un, sun_path)),
	    100, len > sizeof un->sun_family ? rel(un->sun_path) : "-");
}

static void bound(int fd, const char *name)
{
	struct sockaddr_un un;
	socklen_t len = address(&un, name);

	T(bind(fd, (struct sockaddr *)&un, len));
}

CASE(stream_sockets)
{
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), fd;
	struct sockaddr_un un;
	socklen_t len = sizeof un;
	struct stat st;
	char buf[8];

	T(mkdir(at("d"), 0755));
	bound(server, "d/s");
	T(lstat(at("d/s"), &st));
	say("%o\n", st.st_mode);
	bound(client, "d/s");
	bound(client, "missing/s");
	V(getsockname(server, (struct sockaddr *)&un, &len));
	say_name("server", &un, len);
	T(connect(client, (struct sockaddr *)&un, address(&un, "d/s")));
	T(listen(server, 3));
	T(connect(client, (struct sockaddr *)&un, address(&un, "missing")));
	T(connect(client, (struct sockaddr *)&un, address(&un, "d/s")));
	len = sizeof un;
	fd = accept(server, (struct sockaddr *)&un, &len);
	V(fd >= 0);
	say("client without a name: %d\n", (int)len);
	len = sizeof un;
	V(getpeername(client, (struct sockaddr *)&un, &len));
	say_name("peer", &un, len);
	T(write(client, "hello", 5));
	T(read(fd, buf, 8));
	T(close(client));
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	bound(client, "d/c");
	T(connect(client, (struct sockaddr *)&un, address(&un, "d/s")));
	len = sizeof un;
	fd = accept4(server, (struct sockaddr *)&un, &len, SOCK_CLOEXEC);
	V(fd >= 0);
	say_name("client", &un, len);
	memset(&un, 0, sizeof un);
	len = sizeof un.sun_family;
	V(getsockname(server, (struct sockaddr *)&un, &len));
	say("family alone %d\n", un.sun_family);
	T(chmod(at("d/s"), 0600));
	T(rename(at("d/s"), at("d/t")));
	T(unlink(at("d/t")));
	T(unlink(at("d/c")));
}

CASE(datagram_sockets)
{
	int a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un un, from;
	char buf[16], other[16];
	struct iovec iov = {"message", 7}, in = {buf, sizeof buf};
	struct msghdr out = {.msg_name = &un, .msg_iov = &iov, .msg_iovlen = 1},
		      got = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &in, .msg_iovlen = 1};
	struct mmsghdr many[2] = {{.msg_hdr = out}, {.msg_hdr = out}};
	socklen_t len = sizeof from;

	bound(a, "a");
	bound(b, "b");
	T(sendto(a, "packet", 6, 0, (struct sockaddr *)&un, address(&un, "b")));
	T(recvfrom(b, buf, sizeof buf, 0, (struct sockaddr *)&from, &len));
	say_name("from", &from, len);
	out.msg_namelen = address(&un, "b");
	T(sendmsg(a, &out, 0));
	say("%d %s\n", out.msg_name == &un, rel(un.sun_path));
	T(recvmsg(b, &got, 0));
	say_name("from", got.msg_name, got.msg_namelen);
	many[0].msg_hdr = many[1].msg_hdr = out;
	T(sendmmsg(a, many, 2, 0));
	many[0].msg_hdr = many[1].msg_hdr = got;
	many[1].msg_hdr.msg_iov = &(struct iovec){other, sizeof other};
	many[1].msg_hdr.msg_name = &(struct sockaddr_un){0};
	many[0].msg_hdr.msg_namelen = many[1].msg_hdr.msg_namelen = sizeof from;
	V(recvmmsg(b, many, 2, 0, NULL));
	say_name("from", many[1].msg_hdr.msg_name, many[1].msg_hdr.msg_namelen);
	say("%u %u %.7s\n", many[0].msg_len, many[1].msg_len, other);
	T(sendto(a, "x", 1, 0, (struct sockaddr *)&un, address(&un, "none")));
	out.msg_namelen = address(&un, "none");
	many[0].msg_hdr = out;
	T(sendmmsg(a, many, 1, 0));
	T(connect(a, (struct sockaddr *)&un, address(&un, "b")));
	T(send(a, "y", 1, 0));
	T(recv(b, buf, 1, 0));
	T(sendmsg(a, NULL, 0));
	T(bind(a, NULL, 0));
}

/* A name near the limit: the backend's path may be longer than fits. */
CASE(long_names)
{
	char dir[200], link[64];
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), n;

	snprintf(link, sizeof link, "/tmp/plfs-test-socket-%d", getpid());
	snprintf(dir, sizeof dir, "%s/%064d", getenv("P"), 0);
	T(mkdir(dir, 0755));
	T(chdir(dir));
	n = snprintf(un.sun_path, sizeof un.sun_path, "%035d", 1);
	T(bind(server, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + n)); /* without a 0 */
	T(listen(server, 1));
	T(connect(client, (struct sockaddr *)&un, sizeof un));
	T(unlink(un.sun_path));
	/* A prefix has room for more than the backend leaves. */
	T(chdir("/"));
	T(symlink(dir, link));
	server = socket(AF_UNIX, SOCK_STREAM, 0);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(un.sun_path, sizeof un.sun_path, "%s/%035d", link, 2);
	T(bind(server, (struct sockaddr *)&un, sizeof un));
	T(listen(server, 1));
	T(connect(client, (struct sockaddr *)&un, sizeof un));
	T(unlink(un.sun_path));
	T(unlink(link));
}

CASE(other_names)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len;
	int n;

	n = snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "plfs-test-%d", getpid());
	len = offsetof(struct sockaddr_un, sun_path) + 1 + n;
	T(bind(fd, (struct sockaddr *)&un, len));
	T(listen(fd, 1));
	T(connect(peer, (struct sockaddr *)&un, len));
	V(getpeername(peer, (struct sockaddr *)&un, &len));
	say("%d\n", (int)len == (int)offsetof(struct sockaddr_un, sun_path) + 1 + n);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	T(bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)));
	T(bind(fd, (struct sockaddr *)&un, 1));
	T(open(at("sock"), O_RDONLY));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	bound(fd, "sock");
	T(open(at("sock"), O_RDONLY));
	make("file", "no socket");
	T(connect(peer = socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, address(&un, "file")));
}

static void *bad(void) { return (void *)0x1234567000; }

/* Addresses of names, of their lengths, of messages: the kernel says of each that it is bad. */
CASE(bad_addresses)
{
	struct sockaddr_un un;
	socklen_t len = address(&un, "s"), *bad_len = bad();
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_name = bad(), .msg_namelen = 20 } },
				   { .msg_hdr = { .msg_control = bad(), .msg_controllen = 64 } } };
	struct msghdr named = { .msg_name = bad(), .msg_namelen = sizeof un },
		      controlled = { .msg_control = bad(), .msg_controllen = 64 };
	int s = socket(AF_UNIX, SOCK_STREAM, 0), d = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];

	T(bind(s, bad(), len));
	T(bind(s, (struct sockaddr *)&un, len));
	T(listen(s, 3));
	T(connect(d, bad(), len));
	T((int)sendto(d, "x", 1, 0, bad(), len));
	T(getsockname(s, (struct sockaddr *)&un, bad_len));
	T(getsockname(s, bad(), &len));
	T(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	T(getpeername(pair[0], bad(), bad_len));
	T((int)sendmsg(pair[0], bad(), 0));
	T((int)sendmsg(pair[0], &named, 0));
	T((int)sendmsg(pair[0], &controlled, 0));
	T(sendmmsg(pair[0], bad(), 2, 0));
	T(sendmmsg(pair[0], msgs, 2, 0));
	T((int)recvmsg(pair[1], bad(), MSG_DONTWAIT));
	T(recvmmsg(pair[1], bad(), 2, MSG_DONTWAIT, NULL));
	T((int)send(pair[0], "x", 1, 0));
	T((int)recvfrom(pair[1], &un, 1, MSG_DONTWAIT, (struct sockaddr *)&un, bad_len));
}
