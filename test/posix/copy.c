/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that go from descriptor to descriptor without a buffer of the program's: copy_file_range, sendfile,
 * splice.
 */
#include "posix.h"
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static int given(const char *name)
{
	make(name, text);
	return rw(name);
}

static uint64_t random_state = 88172645463325252u;
static unsigned rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dull >> 33;
}

static uint64_t sum_of(const unsigned char *p, size_t len)
{
	uint64_t h = 1469598103934665603u;

	while (len--)
		h = (h ^ *p++) * 1099511628211u;
	return h;
}

/* Length and hash of a whole file. */
static void sum(const char *name)
{
	static unsigned char buf[4 << 20];
	int fd = open(at(name), O_RDONLY);
	ssize_t n, len = 0;

	while (fd >= 0 && (n = read(fd, buf + len, sizeof buf - len)) > 0)
		len += n;
	say("%s: %zd bytes, %016" PRIx64 "\n", name, len, sum_of(buf, len));
	close(fd);
}

/* A file of @len bytes that are nowhere alike. */
static int big(const char *name, size_t len)
{
	unsigned char *buf = malloc(len);
	int fd = open(at(name), O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (size_t i = 0; i < len; i++)
		buf[i] = rnd();
	if (write(fd, buf, len) != (ssize_t)len)
		say("cannot write %s\n", name);
	free(buf);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* The same below the directory that is mapped for nobody. */
static int elsewhere(void) { return open("/tmp", O_TMPFILE | O_RDWR, 0600); }

static void positions(int in, int out)
{
	say("at %ld and %ld\n", (long)lseek(in, 0, SEEK_CUR), (long)lseek(out, 0, SEEK_CUR));
}

CASE(ranges_between_two_files)
{
	int in = given("in"), out = rw("out");
	off_t from = 3, to = 5;

	T(copy_file_range(in, &from, out, &to, 10, 0));
	say("%ld %ld\n", from, to);
	positions(in, out);
	T(lseek(in, 20, SEEK_SET));
	T(copy_file_range(in, NULL, out, NULL, 4, 0));
	positions(in, out);
	T(copy_file_range(in, NULL, out, &to, 1000, 0));
	say("%ld\n", to);
	positions(in, out);
	T(copy_file_range(in, NULL, out, NULL, 1000, 0));
	from = 1000;
	T(copy_file_range(in, &from, out, NULL, 1, 0));
	from = 0, to = 100;
	T(copy_file_range(in, &from, out, &to, SSIZE_MAX / 2, 0));
	T(copy_file_range(in, &from, out, &to, 0, 0));
	positions(in, out);
	show("out");
	show("in");
}

CASE(ranges_within_one_file)
{
	int fd = given("f"), other = rw("f");
	off_t from, to;

	from = 0, to = 36;
	T(copy_file_range(fd, &from, fd, &to, 36, 0));
	from = 10, to = 5;
	T(copy_file_range(fd, &from, other, &to, 6, 0));
	from = 10, to = 5;
	T(copy_file_range(fd, &from, other, &to, 5, 0));
	from = 5, to = 10;
	T(copy_file_range(fd, &from, fd, &to, 6, 0));
	from = 60, to = 71; /* what lies past the end does not count */
	T(copy_file_range(fd, &from, fd, &to, 1000, 0));
	from = 60, to = 72;
	T(copy_file_range(fd, &from, fd, &to, 1000, 0));
	from = 7, to = 7;
	T(copy_file_range(fd, &from, fd, &to, 0, 0));
	T(copy_file_range(fd, &from, fd, &to, 1, 0));
	show("f");
}

CASE(ranges_that_cannot_be)
{
	int in = given("in"), out = rw("out"), ro = open(at("in"), O_RDONLY), wo = open(at("out"), O_WRONLY);
	int app = open(at("out"), O_WRONLY | O_APPEND), later = rw("out"), dir = open(at(""), O_RDONLY), p[2];
	off_t off, to;

	T(pipe(p));
	T(fcntl(later, F_SETFL, O_APPEND));
	T(copy_file_range(in, NULL, out, NULL, 5, 1));
	T(copy_file_range(in, NULL, ro, NULL, 5, 0));
	T(copy_file_range(wo, NULL, out, NULL, 5, 0));
	T(copy_file_range(in, NULL, app, NULL, 5, 0));
	T(copy_file_range(in, NULL, later, NULL, 5, 0));
	T(copy_file_range(in, NULL, app, NULL, 0, 0));
	T(copy_file_range(dir, NULL, out, NULL, 5, 0));
	T(copy_file_range(in, NULL, dir, NULL, 5, 0));
	T(copy_file_range(in, NULL, p[1], NULL, 5, 0));
	T(copy_file_range(p[0], NULL, out, NULL, 5, 0));
	T(copy_file_range(in, NULL, 999, NULL, 5, 0));
	T(copy_file_range(999, NULL, out, NULL, 5, 0));
	T(copy_file_range(in, NULL, -1, NULL, 5, 0));
	off = -1;
	T(copy_file_range(in, &off, out, NULL, 5, 0));
	T(copy_file_range(in, &off, out, NULL, 0, 0));
	T(copy_file_range(in, NULL, out, &off, 5, 0));
	T(copy_file_range(in, NULL, out, &off, 0, 0));
	off = INT64_MAX - 2;
	T(copy_file_range(in, &off, out, NULL, 5, 0));
	T(copy_file_range(in, NULL, out, &off, 5, 0));
	off = 0, to = 3;
	T(copy_file_range(in, &off, out, &to, SIZE_MAX, 0));
	off = 2, to = 30;
	T(copy_file_range(in, &off, out, &to, SIZE_MAX - 1, 0));
	T(copy_file_range(in, &off, out, &to, SIZE_MAX / 2 - 30, 0));
	say("%ld %ld\n", off, to);
	positions(in, out);
	show("out");
}

CASE(random_ranges)
{
	int fds[3] = {big("a", 300000), big("b", 100000), rw("a")};
	off_t from, to;
	int i, j, in, out;
	ssize_t n;

	for (i = 0; i < 400; i++) {
		in = fds[rnd() % 3], out = fds[rnd() % 3];
		from = rnd() % 350000, to = rnd() % 350000;
		size_t len = rnd() % (i % 4 ? 3000 : 200000);

		for (j = 0; j < 3; j++)
			if (rnd() % 3 == 0)
				lseek(fds[j], rnd() % 300000, SEEK_SET);
		errno = 0;
		n = copy_file_range(in, rnd() % 2 ? &from : NULL, out, rnd() % 2 ? &to : NULL, len, 0);
		say("%zd %d: %ld %ld, %ld %ld %ld\n", n, errno, from, to, (long)lseek(fds[0], 0, SEEK_CUR),
		    (long)lseek(fds[1], 0, SEEK_CUR), (long)lseek(fds[2], 0, SEEK_CUR));
		if (i % 50 == 0) {
			ftruncate(fds[i / 50 % 2], 50000 + rnd() % 200000);
			sum("a");
			sum("b");
		}
	}
	sum("a");
	sum("b");
}

CASE(random_sends)
{
	int fds[3] = {big("a", 300000), big("b", 100000), rw("a")}, out = rw("c"), i, in;
	off_t off;
	ssize_t n;

	for (i = 0; i < 300; i++) {
		in = fds[rnd() % 3], off = rnd() % 350000;
		size_t len = rnd() % (i % 4 ? 3000 : 200000);

		if (rnd() % 4 == 0)
			lseek(out, rnd() % 1000000, SEEK_SET);
		if (rnd() % 3 == 0)
			lseek(in, rnd() % 300000, SEEK_SET);
		errno = 0;
		n = sendfile(out, in, rnd() % 2 ? &off : NULL, len);
		say("%zd %d: %ld, %ld %ld\n", n, errno, off, (long)lseek(in, 0, SEEK_CUR),
		    (long)lseek(out, 0, SEEK_CUR));
	}
	sum("c");
}

CASE(sent_between_files)
{
	int in = given("in"), out = rw("out"), wo = open(at("in"), O_WRONLY), ro = open(at("out"), O_RDONLY),
	    plain = elsewhere();
	int app = open(at("out"), O_WRONLY | O_APPEND), dir = open(at(""), O_RDONLY), later = rw("out"), p[2];
	off_t off = 4;

	T(sendfile(out, in, &off, 8));
	say("%ld\n", off);
	positions(in, out);
	T(sendfile(out, in, NULL, 3));
	positions(in, out);
	T(sendfile(out, in, NULL, 1000));
	T(sendfile(out, in, NULL, 1000));
	positions(in, out);
	off = 1000;
	T(sendfile(out, in, &off, 1000));
	T(sendfile(plain, in, &off, 0));
	off = 30;
	T(sendfile(plain, in, &off, 100));
	say("%ld, plain at %ld\n", off, (long)lseek(plain, 0, SEEK_CUR));
	off = 2;
	T(sendfile(out, plain, &off, 100));
	T(lseek(plain, 1, SEEK_SET));
	T(sendfile(out, plain, NULL, 2));
	positions(plain, out);
	T(sendfile(out, wo, NULL, 5));
	T(sendfile(ro, in, NULL, 5));
	T(sendfile(app, in, NULL, 5));
	T(sendfile(app, in, NULL, 0));
	T(fcntl(later, F_SETFL, O_APPEND));
	T(sendfile(later, in, NULL, 5));
	T(pipe(p));
	T(sendfile(out, p[0], NULL, 5));
	T(sendfile(out, p[0], &off, 5));
	T(sendfile(p[0], in, NULL, 5));
	T(sendfile(out, dir, NULL, 5));
	T(sendfile(dir, in, NULL, 5));
	T(sendfile(out, -1, NULL, 5));
	T(sendfile(999, in, NULL, 5));
	off = -1;
	T(sendfile(out, in, &off, 5));
	T(sendfile(out, in, &off, 0));
	off = INT64_MAX - 2;
	T(sendfile(out, in, &off, 5));
	off = 0;
	T(sendfile(out, in, &off, SIZE_MAX));
	T(sendfile(out, in, &off, SSIZE_MAX));
	say("%ld\n", off);
	positions(in, out);
	show("out");
}

CASE(sent_to_a_device_and_from_one)
{
	int in = given("in"), out = rw("out"), null = open("/dev/null", O_WRONLY),
	    zero = open("/dev/zero", O_RDONLY);
	off_t off = 0;

	T(sendfile(null, in, NULL, 100));
	T(sendfile(out, zero, NULL, 10));
	T(sendfile(out, zero, &off, 10));
	off = 0;
	T(sendfile(out, in, &off, 3));
	say("%ld\n", off);
	show("out");
}

/* The other end of a socket or a pipe: reads all there is, slowly at first. */
static unsigned char *received;
static size_t nr_received;
static void *receive(void *arg)
{
	int fd = *(int *)arg, i = 0;
	ssize_t n;

	received = malloc(4 << 20);
	while ((n = read(fd, received + nr_received, i++ < 30 ? 1 + rnd() % 5000 : 100000)) > 0) {
		nr_received += n;
		if (i < 30)
			usleep(200);
	}
	return NULL;
}

static int connected(int *other, int flags)
{
	int s[2], small = 4096;

	if (socketpair(AF_UNIX, SOCK_STREAM | flags, 0, s))
		say("no sockets\n");
	setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	*other = s[1];
	return s[0];
}

CASE(sent_through_a_socket)
{
	int in = big("in", 1000000), other, s = connected(&other, 0);
	pthread_t t;
	off_t off = 1000;

	pthread_create(&t, NULL, receive, &other);
	T(sendfile(s, in, &off, 700000));
	say("%ld\n", off);
	T(sendfile(s, in, &off, 700000));
	say("%ld, %ld\n", off, (long)lseek(in, 0, SEEK_CUR));
	T(shutdown(s, SHUT_WR));
	pthread_join(t, NULL);
	say("%zu %016" PRIx64 "\n", nr_received, sum_of(received, nr_received));
}

/* As a web server does it: what did not fit is sent when there is room. */
static void send_nonblocking(bool own_offset)
{
	int in = big("in", 1000000), other, s = connected(&other, 0), again = 0;
	struct pollfd p = {s, POLLOUT, 0};
	off_t off = 0, before;
	size_t total = 0;
	pthread_t t;
	ssize_t n;

	nr_received = 0;
	fcntl(s, F_SETFL, O_NONBLOCK);
	pthread_create(&t, NULL, receive, &other);
	for (;;) {
		before = own_offset ? lseek(in, 0, SEEK_CUR) : off;
		errno = 0;
		n = sendfile(s, in, own_offset ? NULL : &off, 1000000);
		if ((own_offset ? lseek(in, 0, SEEK_CUR) : off) != before + (n > 0 ? n : 0))
			say("moved by something else than the result\n");
		if (n > 0 && errno)
			say("errno changed\n");
		if (n == 0)
			break;
		if (n > 0)
			total += n;
		else if (errno == EAGAIN)
			again++, poll(&p, 1, 1000);
		else {
			say("%s\n", strerrorname_np(errno));
			break;
		}
	}
	shutdown(s, SHUT_WR);
	pthread_join(t, NULL);
	say("%zu, %zu %016" PRIx64 ", %s\n", total, nr_received, sum_of(received, nr_received),
	    again ? "had to wait" : "never waited");
}

CASE(sent_through_a_socket_without_blocking)
{
	send_nonblocking(false);
	send_nonblocking(true);
}

CASE(nobody_at_the_other_end)
{
	int in = given("in"), other, s = connected(&other, 0), p[2];
	off_t off = 0;

	signal(SIGPIPE, SIG_IGN);
	close(other);
	T(sendfile(s, in, &off, 10));
	T(pipe(p));
	close(p[0]);
	T(sendfile(p[1], in, &off, 10));
	T(splice(in, &off, p[1], NULL, 10, 0));
	say("%ld\n", off);
	IN_CHILD(signal(SIGPIPE, SIG_DFL); sendfile(p[1], in, &off, 10));
	IN_CHILD(signal(SIGPIPE, SIG_DFL); splice(in, NULL, p[1], NULL, 10, 0));
}

/* A pipe takes what it has room for and no more: its reader may be the same thread. */
CASE(sent_into_a_pipe)
{
	int in = big("in", 300000), p[2];
	static unsigned char buf[1 << 17];
	off_t off = 0;
	ssize_t n;

	T(pipe(p));
	n = T(sendfile(p[1], in, &off, 300000));
	say("%ld %zd\n", off, read(p[0], buf, sizeof buf));
	say("%016" PRIx64 "\n", sum_of(buf, n));
	T(sendfile(p[1], in, NULL, 100));
	T(fcntl(p[1], F_SETFL, O_NONBLOCK));
	while ((n = sendfile(p[1], in, &off, 7000)) > 0)
		;
	say_result("until full", n, errno);
	T(sendfile(p[1], in, &off, 300000));
	for (n = 0; n < 100;)
		n += read(p[0], buf + n, 100 - n);
	say("%016" PRIx64 ", %ld\n", sum_of(buf, n), (long)lseek(in, 0, SEEK_CUR));
}

CASE(spliced_out)
{
	int in = big("in", 200000), p[2], wo = open(at("in"), O_WRONLY);
	static unsigned char buf[1 << 17];
	off_t off = 5;
	ssize_t n;

	T(pipe(p));
	T(splice(in, &off, p[1], NULL, 1000, 0));
	T(splice(in, NULL, p[1], NULL, 1000, SPLICE_F_MOVE | SPLICE_F_MORE));
	say("%ld %ld\n", off, (long)lseek(in, 0, SEEK_CUR));
	T(n = read(p[0], buf, sizeof buf));
	say("%016" PRIx64 "\n", sum_of(buf, n));
	T(splice(in, NULL, p[1], NULL, 300000, 0));
	T(splice(in, NULL, p[1], NULL, 300000, SPLICE_F_NONBLOCK));
	T(n = read(p[0], buf, sizeof buf));
	say("%016" PRIx64 "\n", sum_of(buf, n));
	off = 199990;
	T(splice(in, &off, p[1], NULL, 1000, 0));
	T(splice(in, &off, p[1], NULL, 1000, 0));
	T(splice(in, &off, p[1], NULL, 0, 0));
	T(splice(in, NULL, p[1], &off, 5, 0));
	T(splice(wo, NULL, p[1], NULL, 5, 0));
	T(splice(in, NULL, p[0], NULL, 5, 0));
	T(splice(in, NULL, p[1], NULL, 5, 0x1000));
	T(splice(in, NULL, in, NULL, 5, 0));
	T(splice(in, NULL, 999, NULL, 5, 0));
	off = -5;
	T(splice(in, &off, p[1], NULL, 5, 0));
}

CASE(spliced_in)
{
	int out = rw("f"), p[2], ro = open(at("f"), O_RDONLY), app = open(at("f"), O_WRONLY | O_APPEND);
	char buf[64];
	off_t off = 10;

	T(pipe(p));
	T(write(p[1], text, 36));
	T(splice(p[0], NULL, out, NULL, 5, 0));
	T(splice(p[0], NULL, out, &off, 6, 0));
	say("%ld\n", off);
	T(write(p[1], "more", 4));
	T(splice(p[0], NULL, out, NULL, 1000, 0));
	say("%ld\n", (long)lseek(out, 0, SEEK_CUR));
	T(splice(p[0], NULL, out, NULL, 1000, SPLICE_F_NONBLOCK));
	T(fcntl(p[0], F_SETFL, O_NONBLOCK));
	T(splice(p[0], NULL, out, NULL, 1000, 0));
	T(write(p[1], "kept", 4));
	T(splice(p[0], NULL, ro, NULL, 10, 0));
	T(splice(p[0], NULL, app, NULL, 10, 0));
	T(splice(p[0], &off, out, NULL, 10, 0));
	T(splice(p[1], NULL, out, NULL, 10, 0));
	T(splice(p[0], NULL, out, NULL, 10, 0x1000));
	T(splice(999, NULL, out, NULL, 10, 0));
	T(splice(p[0], NULL, out, NULL, 0, 0));
	off = -5;
	T(splice(p[0], NULL, out, &off, 10, 0));
	T(read(p[0], buf, sizeof buf));
	T(close(p[1]));
	T(splice(p[0], NULL, out, NULL, 1000, 0));
	show("f");
}

static void *feed(void *arg)
{
	unsigned char buf[9000];
	size_t i, n;

	for (n = 0; n < 800000; n += i) {
		for (i = 0; i < sizeof buf; i++)
			buf[i] = (n + i) * 2654435761u >> 24;
		i = 1 + n % 8999;
		write(*(int *)arg, buf, i);
	}
	close(*(int *)arg);
	return NULL;
}

CASE(spliced_through)
{
	int p[2], q[2], out = rw("f"), end;
	size_t total = 0;
	pthread_t t;
	ssize_t n;

	T(pipe(p));
	end = p[1];
	pthread_create(&t, NULL, feed, &end);
	while ((n = splice(p[0], NULL, out, NULL, 1 << 20, 0)) > 0)
		total += n;
	pthread_join(t, NULL);
	say("%zu\n", total);
	sum("f");
	T(pipe(q));
	pthread_create(&t, NULL, receive, &q[0]);
	for (off_t off = 3; (n = splice(out, &off, q[1], NULL, 1 << 20, 0)) > 0;)
		;
	close(q[1]);
	pthread_join(t, NULL);
	say("%zu %016" PRIx64 "\n", nr_received, sum_of(received, nr_received));
}

/* One offset, whoever moves it. */
CASE(offsets_that_lead_nowhere)
{
	off_t *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), zero = 0;
	int fd = given("a"), to = rw("b"), pipe_fds[2];

	T(pipe(pipe_fds));
	T(write(pipe_fds[1], "piped", 5));
	T(splice(fd, bad, pipe_fds[1], NULL, 4, 0));
	T(splice(pipe_fds[0], NULL, fd, bad, 4, 0));
	T(copy_file_range(fd, bad, to, NULL, 4, 0));
	T(copy_file_range(fd, NULL, to, bad, 4, 0));
	T(copy_file_range(fd, &zero, to, (off_t *)1, 4, 0));
	T(ioctl(fd, FIONREAD, bad));
	show("a");
}

CASE(the_offset_is_shared_with_a_child)
{
	int in = given("in"), out = rw("out");

	IN_CHILD(copy_file_range(in, NULL, out, NULL, 5, 0));
	positions(in, out);
	T(copy_file_range(in, NULL, out, NULL, 5, 0));
	IN_CHILD(sendfile(out, in, NULL, 7));
	T(sendfile(out, in, NULL, 7));
	positions(in, out);
	show("out");
}

CASE(numbers_without_a_file)
{
	int fd = given("f"), p[2];

	T(pipe(p));
	close(fd);
	T(copy_file_range(fd, NULL, fd, NULL, 1, 0));
	T(sendfile(fd, fd, NULL, 1));
	T(tee(p[0], p[1], 1, SPLICE_F_NONBLOCK));
}
