/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that lose their name, or get another, while they are open. */
#include "posix.h"
#include <sys/socket.h>

/* Nobody has it open while it is on its way. */
static void on_its_way(int flags)
{
	int sv[2], fd = T(open(at("f"), O_RDWR | O_CREAT | flags, 0644));
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} u = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	char c, buf[16] = "";
	struct iovec iov = {&c, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u};

	T(write(fd, "one", 3));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	memcpy(CMSG_DATA(&u.h), &fd, sizeof fd);
	T(sendmsg(sv[0], &m, 0));
	T(close(fd));
	IN_CHILD(T(unlink(at("f"))));
	T(recvmsg(sv[1], &m, 0));
	memcpy(&fd, CMSG_DATA(&u.h), sizeof fd);
	T(write(fd, "two", 3));
	T(fsync(fd));
	T(pread(fd, buf, sizeof buf - 1, 0));
	say("%s\n", buf);
	T(close(fd));
	close(sv[0]);
	close(sv[1]);
}

CASE(unlinked_on_its_way_over_a_socket)
{
	on_its_way(O_APPEND);
	on_its_way(0);
}

static void append_and_read(int fd)
{
	char buf[32] = "";

	T(write(fd, "more ", 5));
	T(fsync(fd));
	T(pread(fd, buf, sizeof buf - 1, 0));
	say("%s\n", buf);
}

/* However it is ended, nothing is left of it. */
CASE(unlinked_while_appended_to)
{
	const int flags = O_RDWR | O_CREAT | O_APPEND;
	int a, b;

	IN_CHILD(append_and_read(a = open(at("f"), flags, 0644)); T(unlink(at("f"))); append_and_read(a);
		 _exit(0));
	IN_CHILD(append_and_read(a = open(at("f"), flags, 0644)); T(unlink(at("f"))); append_and_read(a);
		 exit(0));
	append_and_read(a = open(at("f"), flags, 0644));
	T(unlink(at("f")));
	append_and_read(a);
	T(close(a));
	append_and_read(a = open(at("f"), flags, 0644));
	b = dup(a);
	T(close(a));
	IN_CHILD(T(unlink(at("f"))); append_and_read(b); T(close(b)));
	append_and_read(b);
	T(close(b));
	append_and_read(a = open(at("f"), flags, 0644));
	b = open(at("f"), flags, 0644);
	T(close(a));
	IN_CHILD(close(b); T(unlink(at("f"))));
	append_and_read(b);
	T(close(b));
	b = -1;
	a = open(at("f"), flags, 0644);
	T(lockf(a, F_LOCK, 0)); /* then a second description is not made */
	append_and_read(b = open(at("f"), flags, 0644));
	T(close(a));
	IN_CHILD(close(b); T(unlink(at("f"))));
	append_and_read(b);
	T(close(b));
}

CASE(unlink_while_open)
{
	char buf[32] = "";
	struct stat st;
	int a = T(rw("f")), b = T(open(at("f"), O_RDONLY));

	T(write(a, "hello", 5));
	T(unlink(at("f")));
	T(open(at("f"), O_RDONLY));
	T(fstat(a, &st));
	say("nlink %ld size %ld\n", (long)st.st_nlink, (long)st.st_size);
	T(write(a, " world", 6));
	T(read(b, buf, 31));
	say("%s\n", buf);
	T(ftruncate(a, 3));
	T(close(a));
	T(pread(b, buf, 31, 0));
	T(rw("f"));
	T(close(b));
	show("f");
}

CASE(unlink_by_another_while_open)
{
	char buf[32] = "";
	int a = T(rw("f"));

	T(write(a, "hello", 5));
	T(system("rm $P/f; echo other >$P/f"));
	T(write(a, " world", 6));
	T(pread(a, buf, 31, 0));
	say("%s\n", buf);
	show("f");
	T(system("rm $P/f"));
	T(close(a));
}

CASE(unlink_then_fork_then_write)
{
	char buf[32] = "";
	int a = T(rw("f"));

	T(write(a, "one", 3));
	T(unlink(at("f")));
	IN_CHILD(T(write(a, "two", 3)); T(pread(a, buf, 31, 0)); say("%s\n", buf));
	T(write(a, "three", 5));
	T(pread(a, buf, 31, 0));
	say("%s\n", buf);
}

CASE(unlink_before_first_write)
{
	char buf[8] = "";
	int a = T(rw("f"));

	T(unlink(at("f")));
	T(write(a, "one", 3));
	T(pread(a, buf, 3, 0));
	say("%s\n", buf);
}

CASE(rename_over_an_open_file)
{
	char buf[32] = "";
	int a, b;

	make("a", "aaa");
	make("b", "bbb");
	a = T(open(at("a"), O_RDWR | O_APPEND));
	b = T(open(at("b"), O_RDWR | O_APPEND));
	T(rename(at("a"), at("b")));
	T(write(a, "+A", 2));
	T(write(b, "+B", 2));
	T(pread(a, buf, 31, 0));
	say("%s\n", buf);
	T(pread(b, buf, 31, 0));
	say("%s\n", buf);
	show("b");
	T(close(b));
	T(close(a));
	show("b");
}

CASE(renamed_while_written)
{
	int fd = T(rw("a"));

	T(write(fd, "one ", 4));
	T(rename(at("a"), at("b")));
	T(write(fd, "two ", 4));
	T(mkdir(at("d"), 0755));
	T(rename(at("b"), at("d/c")));
	T(write(fd, "three", 5));
	T(rename(at("d"), at("e")));
	T(close(fd));
	show("e/c");
}
