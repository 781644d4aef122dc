/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the conformance suites for file systems ask beyond the other cases: rare combinations of what is there
 * and how it is asked for.
 */
#include "posix.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

/* A fifo, a directory, a link: O_CREAT finds them there, whoever looks at them first. */
CASE(creating_what_is_there_but_no_file)
{
	static const char *const names[] = {"fifo", "dir", "null", "link", "dangling", "loop", "plain"};
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR};

	T(mkfifo(at("fifo"), 0644));
	T(mkdir(at("dir"), 0755));
	T(mknod(at("null"), S_IFCHR | 0666, makedev(1, 3)));
	T(symlink("dir", at("link")));
	T(symlink("none/none", at("dangling")));
	T(symlink("loop", at("loop")));
	make("plain", "text");
	alarm(10); /* an open of a fifo waits for the other end */
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t m = 0; m < 3; m++) {
			say("%s, mode %d\n", names[i], modes[m]);
			T(open(at(names[i]), modes[m] | O_CREAT | O_EXCL, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_EXCL | O_TRUNC, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_NONBLOCK, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_NONBLOCK | O_TRUNC, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0644));
		}
	show("plain");
}

/* ---- sockets that have a name in the file system ---- */

static socklen_t socket_name(struct sockaddr_un *un, const char *path)
{
	memset(un, 0, sizeof *un);
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, path);
	return offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
}

static void say_name(const char *expected, const struct sockaddr_un *un, socklen_t len)
{
	size_t header = offsetof(struct sockaddr_un, sun_path);

	if (len <= header)
		say("no name\n");
	else
		say("%s, length %s\n", strcmp(un->sun_path, expected) ? un->sun_path : "as bound",
		    len == header + strlen(un->sun_path) + 1 ? "right" : "wrong");
}

CASE(stream_socket_with_a_name)
{
	struct sockaddr_un un, got;
	socklen_t len = socket_name(&un, at("sock")), got_len = sizeof got;
	struct stat st;
	char buf[8] = "";
	int s = socket(AF_UNIX, SOCK_STREAM, 0), c, a;

	T(bind(s, (struct sockaddr *)&un, len));
	T(lstat(at("sock"), &st));
	say("a socket: %d, address as it was: %d\n", S_ISSOCK(st.st_mode), !strcmp(un.sun_path, at("sock")));
	T(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
	T(getsockname(s, (struct sockaddr *)&got, &got_len));
	say_name(at("sock"), &got, got_len);
	T(listen(s, 1));
	T(open(at("sock"), O_RDWR));
	T(open(at("sock"), O_RDWR | O_CREAT | O_EXCL, 0644));
	c = socket(AF_UNIX, SOCK_STREAM, 0);
	T(connect(c, (struct sockaddr *)&un, len));
	got_len = sizeof got;
	T(getpeername(c, (struct sockaddr *)&got, &got_len));
	say_name(at("sock"), &got, got_len);
	got_len = sizeof got;
	a = T(accept(s, (struct sockaddr *)&got, &got_len));
	say_name("none", &got, got_len);
	T(write(c, "hello", 5));
	T(read(a, buf, sizeof buf));
	say("%s\n", buf);
	T(unlink(at("sock")));
	T(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
	make("file", "text");
	len = socket_name(&un, at("file"));
	T(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
	T(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
	len = socket_name(&un, at("none/sock"));
	T(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
	T(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, sizeof un.sun_family - 1));
	T(bind(socket(AF_UNIX, SOCK_STREAM, 0), NULL, len));
}

CASE(datagram_sockets_with_names)
{
	struct sockaddr_un to, from, got;
	socklen_t to_len = socket_name(&to, at("to")), from_len = socket_name(&from, at("from")),
		  got_len = sizeof got;
	char buf[16] = "";
	struct iovec iov = {buf, sizeof buf};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};
	int r = socket(AF_UNIX, SOCK_DGRAM, 0), s = socket(AF_UNIX, SOCK_DGRAM, 0);

	T(bind(r, (struct sockaddr *)&to, to_len));
	T(bind(s, (struct sockaddr *)&from, from_len));
	T(sendto(s, "one", 3, 0, (struct sockaddr *)&to, to_len));
	T(recvfrom(r, buf, sizeof buf, 0, (struct sockaddr *)&got, &got_len));
	say_name(at("from"), &got, got_len);
	m.msg_hdr.msg_name = &to, m.msg_hdr.msg_namelen = to_len, iov.iov_len = 2;
	T(sendmsg(s, &m.msg_hdr, 0));
	T(sendmmsg(s, &m, 1, 0));
	say("address as it was: %d\n", m.msg_hdr.msg_name == &to && !strcmp(to.sun_path, at("to")));
	m.msg_hdr.msg_name = &got, m.msg_hdr.msg_namelen = sizeof got;
	memset(&got, 0, sizeof got);
	T(recvmsg(r, &m.msg_hdr, 0));
	say_name(at("from"), &got, m.msg_hdr.msg_namelen);
	m.msg_hdr.msg_namelen = sizeof got;
	memset(&got, 0, sizeof got);
	T(recvmmsg(r, &m, 1, MSG_DONTWAIT, NULL));
	say_name(at("from"), &got, m.msg_hdr.msg_namelen);
	T(recvfrom(r, buf, sizeof buf, MSG_DONTWAIT, NULL, NULL));
	T(connect(s, (struct sockaddr *)&to, to_len));
	T(send(s, "two", 3, 0));
	T(recvfrom(r, buf, sizeof buf, MSG_DONTWAIT, NULL, NULL));
}

CASE(sockets_by_relative_and_linked_names)
{
	struct sockaddr_un un, got;
	socklen_t len, got_len = sizeof got;
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	T(mkdir(at("d"), 0755));
	T(symlink("d", at("l")));
	T(chdir(at("d")));
	len = socket_name(&un, "sock");
	T(bind(s, (struct sockaddr *)&un, len));
	T(listen(s, 4));
	T(getsockname(s, (struct sockaddr *)&got, &got_len));
	say_name("sock", &got, got_len);
	len = socket_name(&un, "../l/sock");
	T(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
	T(chdir("/"));
	len = socket_name(&un, getenv("P"));
	strcat(un.sun_path, "/l/sock");
	len += strlen("/l/sock");
	T(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&un, len));
}

/* ---- ranges ---- */

CASE(ranges_taken_out_and_inserted)
{
	static char buf[3 * 4096 + 100];
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644)), other;

	for (size_t i = 0; i < sizeof buf; i++)
		buf[i] = 'a' + i / 4096;
	T(write(fd, buf, sizeof buf));
	other = T(open(at("f"), O_RDONLY));
	T(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 4096, 4096));
	show("f");
	T(fallocate(fd, FALLOC_FL_INSERT_RANGE, 4096, 8192));
	show("f");
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(other, 0, SEEK_END));
	T(write(fd, "behind", 6));
	show("f");
	T(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 100, 4096));
	T(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 4096, 1 << 20));
	T(fallocate(fd, FALLOC_FL_INSERT_RANGE, 1 << 20, 4096));
	T(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 7));
	T(fallocate(fd, FALLOC_FL_INSERT_RANGE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	T(fallocate(other, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
	T(close(fd));
	show("f");
}

CASE(ranges_that_are_too_long)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE};
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(write(fd, "text", 4));
	for (int i = 0; i < 3; i++) {
		T(fallocate(fd, modes[i], 1024, INT64_MAX - 1023));
		T(fallocate(fd, modes[i], 1, INT64_MAX));
		T(fallocate(fd, modes[i], INT64_MAX, INT64_MAX));
		T(fallocate(fd, modes[i], INT64_MAX, 1));
		T(fallocate(fd, modes[i], -1, 1));
		T(fallocate(fd, modes[i], 1, 0));
	}
	V(posix_fallocate(fd, 1024, INT64_MAX - 1023));
	fd = T(open(at("f"), O_RDONLY));
	T(fallocate(fd, 0, -1, 1));
	T(fallocate(fd, 0, 1, 0));
	T(fallocate(fd, 0, 1, 1));
	V(posix_fallocate(fd, -1, 1));
	V(posix_fallocate(fd, 1, 1));
	show("f");
}

/* Also where there is nothing to allocate. */
CASE(allocating_is_a_modification)
{
	static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	static const off_t ranges[][2] = {{0, 50}, {100, 50}, {150000, 200}, {150100, 100}};
	static char buf[150000];
	struct stat st;

	for (int large = 0; large < 2; large++) {
		int fd = T(rw(large ? "large" : "small"));

		T(write(fd, buf, large ? sizeof buf : 100));
		for (int i = 0; i < 8; i++) {
			T(futimens(fd, old));
			T(fallocate(fd, i & 1 ? FALLOC_FL_KEEP_SIZE : 0, ranges[i / 2][0], ranges[i / 2][1]));
			T(fstat(fd, &st));
			say("%s %ld\n", st.st_mtime == 1000000000 ? "old" : "new", (long)st.st_size);
			T(stat(at(large ? "large" : "small"), &st));
			say("%s\n", st.st_mtime == 1000000000 ? "old" : "new");
		}
		T(close(fd));
	}
}

/* ---- links and renames that cannot be ---- */

CASE(links_from_nowhere)
{
	int file = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(link("", at("new")));
	T(link(at("f"), ""));
	T(rename("", at("new")));
	T(rename(at("f"), ""));
	T(link("/nowhere/f", at("new")));
	T(linkat(file, "f", AT_FDCWD, at("new"), 0));
	T(linkat(AT_FDCWD, at("f"), file, "new", 0));
	T(renameat(file, "f", AT_FDCWD, at("new")));
	T(renameat(-1, "f", AT_FDCWD, at("new")));
	T(link("/etc/passwd/f", at("new")));
	T(symlink("", at("new")));
	T(access(at("new"), F_OK));
}

/* ---- several at the same time ---- */

enum { nr_records = 300, record_max = 700 };

/* A record: who wrote it, the how manieth it is, its length, and then a letter as often as it takes. */
struct record {
	int who, nr, len;
	char text[record_max];
};

static int make_record(struct record *r, int who, int nr)
{
	r->who = who;
	r->nr = nr;
	r->len = 20 + (nr * 37 + who * 101) % (record_max - 40);
	memset(r->text, 'a' + (who + nr) % 26, r->len);
	return offsetof(struct record, text) + r->len;
}

/*
 * Whether @buf begins with whole records of @nr_writers, each one's in order and without a gap; *@seen is the
 * first of each that has not been there. Returns what is left over at the end.
 */
static long parse_records(const char *buf, long len, int nr_writers, int *seen, bool *right)
{
	struct record want, r;
	long off = 0;

	while (off + (long)offsetof(struct record, text) <= len) {
		memcpy(&r, buf + off, offsetof(struct record, text));
		*right = r.who >= 0 && r.who < nr_writers && r.nr >= 0 && r.nr < nr_records;
		if (!*right)
			return len - off;
		make_record(&want, r.who, r.nr);
		*right = r.len == want.len && (seen == NULL || seen[r.who] == r.nr);
		if (!*right || off + (long)offsetof(struct record, text) + r.len > len)
			return len - off;
		*right = !memcmp(buf + off + offsetof(struct record, text), want.text, r.len);
		if (!*right)
			return len - off;
		if (seen)
			seen[r.who]++;
		off += offsetof(struct record, text) + r.len;
	}
	*right = true;
	return len - off;
}

static long read_all(int fd, char *buf, long room)
{
	long len = 0, n;

	while ((n = read(fd, buf + len, room - len)) > 0)
		len += n;
	return n < 0 ? n : len;
}

static void append_records(int who)
{
	int fd = open(at("log"), O_WRONLY | O_APPEND | O_CREAT, 0644);
	struct record r;

	for (int i = 0; i < nr_records; i++) {
		int len = make_record(&r, who, i);

		if (write(fd, &r, len) != len)
			_exit(1);
		if (i % 50 == 49) {
			close(fd);
			fd = open(at("log"), O_WRONLY | O_APPEND);
		}
	}
	_exit(close(fd) ? 2 : 0);
}

/* Read the log again and again until *@stop: it only ever grows, by whole records but for its end. */
static void watch_records(volatile bool *stop)
{
	static char buf[4 * nr_records * record_max];
	long len, before = 0;
	bool right;

	do {
		int fd = open(at("log"), O_RDONLY);

		len = read_all(fd, buf, sizeof buf);
		parse_records(buf, len, 3, NULL, &right);
		if (len < before || !right || close(fd))
			_exit(len < before ? 1 : 2);
		before = len;
		usleep(500);
	} while (!*stop);
	_exit(0);
}

CASE(appended_by_many_while_it_is_read)
{
	static char buf[4 * nr_records * record_max];
	volatile bool *stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t writers[3], readers[2];
	int seen[3] = {0};
	bool right = false;
	long rest;

	make("log", "");
	for (int r = 0; r < 2; r++)
		if ((readers[r] = fork()) == 0)
			watch_records(stop);
	for (int w = 0; w < 3; w++)
		if ((writers[w] = fork()) == 0)
			append_records(w);
	for (int w = 0; w < 3; w++)
		say_child(writers[w]);
	*stop = true;
	for (int r = 0; r < 2; r++)
		say_child(readers[r]);
	rest = parse_records(buf, read_all(open(at("log"), O_RDONLY), buf, sizeof buf), 3, seen, &right);
	say("right: %d, left over: %ld, records %d %d %d\n", right, rest, seen[0], seen[1], seen[2]);
	T(unlink(at("log"))); /* whose record comes first is another one every time */
}

CASE(appended_while_it_is_truncated)
{
	static char buf[4 * nr_records * record_max];
	pid_t writers[2];
	bool right = false;
	long len;
	int fd;

	make("log", "");
	for (int w = 0; w < 2; w++)
		if ((writers[w] = fork()) == 0)
			append_records(w);
	fd = open(at("log"), O_RDWR);
	for (int i = 0; i < 40; i++) {
		usleep(300);
		if (i % 2 ? ftruncate(fd, 0) : truncate(at("log"), 0))
			say("truncate: %s\n", strerrorname_np(errno));
	}
	for (int w = 0; w < 2; w++)
		say_child(writers[w]);
	len = read_all(open(at("log"), O_RDONLY), buf, sizeof buf);
	say("left over: %ld, ", parse_records(buf, len, 2, NULL, &right));
	say("right: %d, size told: %d\n", right, lseek(fd, 0, SEEK_END) == len);
	T(unlink(at("log")));
}

CASE(read_while_others_are_renamed_over_it)
{
	static char buf[100000];
	pid_t pid;

	make("f", "aaaa");
	if ((pid = fork()) == 0) {
		for (int i = 0; i < 200; i++) {
			long len = 1 + i * 397 % sizeof buf;
			int fd = open(at("new"), O_WRONLY | O_CREAT | O_TRUNC, 0644);

			memset(buf, 'a' + i % 26, len);
			if (write(fd, buf, len) != len || (i % 3 == 0 && fsync(fd)) || close(fd) ||
			    rename(at("new"), at("f")))
				_exit(1);
		}
		_exit(0);
	}
	for (int i = 0; i < 200; i++) {
		int fd = open(at("f"), O_RDONLY);
		long len = read_all(fd, buf, sizeof buf);
		struct stat st;

		if (fstat(fd, &st) || st.st_size != len || len < 1)
			say("size %ld, read %ld, %s\n", (long)st.st_size, len, strerrorname_np(errno));
		for (long j = 1; j < len; j++)
			if (buf[j] != buf[0]) {
				say("of two files: %c at 0, %c at %ld\n", buf[0], buf[j], j);
				break;
			}
		close(fd);
	}
	say_child(pid);
}

static void *write_stripe(void *arg)
{
	int me = (int)(intptr_t)arg, fd = open(at("f"), O_WRONLY);
	char block[512];

	memset(block, 'A' + me, sizeof block);
	for (long i = 0; i < 400; i++)
		if (pwrite(fd, block, sizeof block, (i * 4 + me) * (long)sizeof block) != sizeof block)
			return (void *)1;
	return (void *)(intptr_t)close(fd);
}

CASE(forks_while_threads_write)
{
	static char buf[4 * 400 * 512];
	pthread_t threads[4];
	void *ret;
	int fd, wrong = 0;

	make("f", "");
	fd = open(at("f"), O_RDWR);
	for (int t = 0; t < 4; t++)
		pthread_create(&threads[t], NULL, write_stripe, (void *)(intptr_t)t);
	for (int i = 0; i < 40; i++)
		IN_CHILD(pread(fd, buf, 4096, 0); lseek(fd, 0, SEEK_END); int own = open(at("f"), O_RDONLY);
			 if (read(own, buf, sizeof buf) < 0 || close(own)) _exit(1));
	for (int t = 0; t < 4; t++) {
		pthread_join(threads[t], &ret);
		if (ret)
			say("thread %d failed\n", t);
	}
	V(pread(fd, buf, sizeof buf, 0));
	for (size_t i = 0; i < sizeof buf; i++)
		wrong += buf[i] != 'A' + (int)(i / 512 % 4);
	say("%d bytes wrong\n", wrong);
}

CASE(unlinked_while_mapped)
{
	char buf[8] = "", *m;
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(ftruncate(fd, 3 * 4096));
	T(pwrite(fd, "text", 4, 5000));
	m = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	T(unlink(at("f")));
	say("%.4s\n", m + 5000);
	memcpy(m + 9000, "more", 4);
	T(pread(fd, buf, 4, 9000));
	say("%s\n", buf);
	make("f", "another");
	T(pwrite(fd, "TEXT", 4, 5000));
	T(close(fd));
	say("%.4s %.4s\n", m + 5000, m + 9000);
	IN_CHILD(memcpy(m, "child", 5));
	say("%.5s\n", m);
	T(munmap(m, 3 * 4096));
	show("f");
}

/* ---- bad arguments ---- */

CASE(addresses_that_lead_nowhere)
{
	char *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), buf[8];
	int fd, null = open("/dev/null", O_WRONLY);
	unsigned long ring = 0;

	make("f", "text");
	T(symlink("f", at("l")));
	fd = T(open(at("f"), O_RDWR));
	T(symlink(bad, at("m")));
	T(symlink((char *)0xdeadc0de, at("m")));
	T(symlink(bad, NULL));
	T(readlink(at("l"), bad, 8));
	T(fcntl(fd, F_GETLK, bad));
	T(fcntl(fd, F_SETLK, (void *)-1));
	T(sendfile(null, fd, (off_t *)bad, 2));
	T(lseek(fd, 0, SEEK_CUR));
	T(read(fd, buf, 2));
	T(syscall(SYS_io_setup, 4, &ring));
	T(syscall(SYS_io_submit, ring, 1, NULL));
	T(syscall(SYS_io_submit, ring, 1, bad));
	T(syscall(SYS_io_submit, ring, 1, &bad));
	T(syscall(SYS_io_destroy, ring));
	show("f");
}

CASE(paths_without_an_end)
{
	char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *relative = p + 3 * 4096 - 4097;
	struct stat st;

	T(chdir(at("")));
	T(mprotect(p + 3 * 4096, 4096, PROT_NONE));
	memset(p, 'a', 3 * 4096);
	T(mknod(relative, S_IFIFO | 0644, 0));
	T(open(relative, O_RDWR | O_CREAT, 0644));
	T(stat(relative, &st));
	T(rename(relative, "f"));
	*relative = '/';
	T(mkdir(relative, 0755));
	T(open(relative, O_RDONLY));
}

CASE(ranges_that_are_synced)
{
	int fd;

	make("f", "text");
	fd = T(open(at("f"), O_RDWR));
	T(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	T(sync_file_range(fd, -1, 1, SYNC_FILE_RANGE_WRITE));
	T(sync_file_range(fd, 0, -1, SYNC_FILE_RANGE_WRITE));
	T(sync_file_range(fd, INT64_MAX, 2, SYNC_FILE_RANGE_WRITE));
	T(sync_file_range(fd, 0, 1, 8));
}

/* What has been written shows in the times that the next call tells. */
CASE(times_after_each_way_to_write)
{
	struct timespec wait = {0, 20000000};
	struct stat before, after;
	int fd, from;

	make("f", "some text");
	make("g", "other text");
	fd = open(at("f"), O_RDWR), from = open(at("g"), O_RDONLY);
	for (int way = 0; way < 5; way++) {
		fstat(fd, &before);
		nanosleep(&wait, NULL);
		switch (way) {
		case 0: T(pwrite(fd, "S", 1, 0)); break;
		case 1: T(copy_file_range(from, NULL, fd, NULL, 4, 0)); break;
		case 2: T(sendfile(fd, from, NULL, 4)); break;
		case 3: T(ftruncate(fd, 3)); break;
		case 4: T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2)); break;
		}
		if (way % 2)
			stat(at("f"), &after);
		else
			fstat(fd, &after);
		say("%d: modified %s, changed %s\n", way,
		    memcmp(&before.st_mtim, &after.st_mtim, sizeof after.st_mtim) ? "since" : "before",
		    memcmp(&before.st_ctim, &after.st_ctim, sizeof after.st_ctim) ? "since" : "before");
	}
}
