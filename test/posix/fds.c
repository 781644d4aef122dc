/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that share a description: dup, fork, exec, passing; and ways to end. */
#include "posix.h"
#include <sys/socket.h>
#include <pthread.h>
#include <spawn.h>

CASE(dup_shares_the_offset)
{
	char buf[16] = "";
	int a = T(rw("f")), b = T(dup(a)), c = T(dup2(a, 9)), d = T(dup3(a, 11, O_CLOEXEC));
	int e = T(fcntl(a, F_DUPFD, 20)), g = T(fcntl(a, F_DUPFD_CLOEXEC, 20));

	T(write(a, "0123456789", 10));
	T(lseek(b, 0, SEEK_CUR));
	T(lseek(c, 2, SEEK_SET));
	T(read(d, buf, 3));
	T(lseek(a, 0, SEEK_CUR));
	T(fcntl(d, F_GETFD));
	T(fcntl(e, F_GETFD));
	T(fcntl(g, F_GETFD));
	T(close(a));
	T(close(b));
	T(write(e, "EE", 2));
	T(close(c));
	T(write(g, "GG", 2));
	T(close(d));
	T(close(e));
	T(fcntl(g, F_SETFL, O_APPEND));
	T(write(g, "end", 3));
	T(dup3(g, g, 0));
	T(dup2(g, g));
	T(dup2(g, -1));
	T(fcntl(g, F_DUPFD, -1));
	T(close(g));
	show("f");
}

CASE(dup2_over_an_open_file)
{
	int a = T(rw("a")), b = T(rw("b"));

	T(write(a, "a1", 2));
	T(write(b, "b1", 2));
	T(dup2(a, b));
	T(write(b, "a2", 2));
	T(close(a));
	T(write(b, "a3", 2));
	T(dup2(1, b));
	T(write(b, "to stdout\n", 10));
	T(close(b));
	show("a");
	show("b");
}

CASE(dup2_onto_standard_output)
{
	int fd = T(rw("f")), old = T(dup(1));

	printf("before\n");
	fflush(stdout);
	dup2(fd, 1);
	write(1, "raw\n", 4);
	printf("stdio\n");
	fflush(stdout);
	system("echo child");
	write(1, "again\n", 6);
	dup2(old, 1);
	printf("after\n");
	fflush(stdout);
	show("f");
	T(lseek(fd, 0, SEEK_CUR));
}

CASE(fork_shares_the_offset_both_ways)
{
	char buf[8] = "";
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(lseek(fd, 0, SEEK_SET));
	IN_CHILD(T(read(fd, buf, 2)); T(write(fd, "CC", 2)));
	T(lseek(fd, 0, SEEK_CUR));
	T(read(fd, buf, 2));
	say("%s\n", buf);
	T(write(fd, "PP", 2));
	IN_CHILD(T(lseek(fd, 0, SEEK_CUR)); T(lseek(fd, 1, SEEK_SET)));
	T(write(fd, "Q", 1));
	show("f");
}

CASE(fork_before_the_first_write)
{
	int fd = T(rw("f"));

	IN_CHILD(T(write(fd, "child ", 6)));
	T(write(fd, "parent ", 7));
	IN_CHILD(T(write(fd, "second ", 7)); IN_CHILD(T(write(fd, "grandchild ", 11)));
		 T(write(fd, "x ", 2)));
	T(write(fd, "end", 3));
	T(close(fd));
	show("f");
}

/*
 * Locks, opens and syncs are where a process must see what others closed; PLFS_CONSISTENCY=posix needs none.
 */
static void acquire(int fd)
{
	const char *consistency = getenv("PLFS_CONSISTENCY");

	if (!consistency || strcmp(consistency, "posix"))
		fsync(fd);
}

CASE(parent_sees_what_its_child_wrote)
{
	char buf[16] = "";
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	IN_CHILD(T(pwrite(fd, "ABC", 3, 2)));
	acquire(fd);
	T(pread(fd, buf, 10, 0));
	say("%s\n", buf);
	IN_CHILD(int o = rw("f"); T(pwrite(o, "xyz", 3, 5)); T(ftruncate(o, 9)); T(close(o)));
	acquire(fd);
	T(pread(fd, buf, 10, 0));
	say("%s\n", buf);
	T(lseek(fd, 0, SEEK_END));
}

CASE(child_sees_what_its_parent_wrote)
{
	char buf[16] = "";
	int fd = T(rw("f")), go[2], c;

	T(write(fd, "0123456789", 10));
	T(pipe(go));
	c = fork();
	if (c == 0) {
		read(go[0], buf, 1);
		T(pread(fd, buf, 10, 0));
		say("%s\n", buf);
		fd = open(at("f"), O_RDONLY);
		T(read(fd, buf, 15));
		say("%s\n", buf);
		_exit(0);
	}
	T(pwrite(fd, "ABC", 3, 2));
	T(pwrite(fd, "ten", 3, 10));
	write(go[1], "g", 1);
	say_child(c);
}

CASE(many_children_write_one_description)
{
	int fd = T(rw("f")), seen[6] = {0}, bad = 0;
	char rec[8];

	for (int c = 0; c < 6; c++)
		if (fork() == 0) {
			for (int i = 0; i < 100; i++) {
				snprintf(rec, sizeof rec, "%d:%04d\n", c, i);
				write(fd, rec, 7);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, 0, SEEK_SET));
	while (read(fd, rec, 7) == 7) {
		int c = rec[0] - '0';
		if (c < 0 || c > 5 || atoi(rec + 2) != seen[c]++)
			bad++;
	}
	say("bad %d, %d %d %d %d %d %d\n", bad, seen[0], seen[1], seen[2], seen[3], seen[4], seen[5]);
	unlink(at("f"));
}

CASE(threads_share_a_descriptor)
{
	int fd = T(rw("f"));
	pthread_t th[8];
	void *writer(void *arg)
	{
		char rec[8];
		long t = (long)arg;

		for (int i = 0; i < 200; i++) {
			snprintf(rec, sizeof rec, "%ld%05d\n", t, i);
			if (i % 2)
				pwrite(fd, rec, 7, 14000 + (t * 200 + i) * 7);
			else
				write(fd, rec, 7);
		}
		return NULL;
	}
	for (long t = 0; t < 8; t++)
		pthread_create(&th[t], NULL, writer, (void *)t);
	for (int t = 0; t < 8; t++)
		pthread_join(th[t], NULL);
	T(lseek(fd, 0, SEEK_CUR));
	T(close(fd));
	T(system("head -c 5600 $P/f | sort | md5sum; tail -c +14001 $P/f | md5sum; rm $P/f"));
}

CASE(exec_inherits_descriptors)
{
	int fd = T(rw("f")), hidden = T(open(at("g"), O_RDWR | O_CREAT | O_CLOEXEC, 0644));

	T(write(fd, "one\n", 4));
	T(write(hidden, "x", 1));
	IN_CHILD(dup2(fd, 7);
		 execl("/bin/sh", "sh", "-c", "echo two >&7; (echo three; echo four) >&7", NULL));
	T(write(fd, "five\n", 5));
	IN_CHILD(dup2(fd, 0); lseek(0, 4, SEEK_SET); execlp("cat", "cat", NULL));
	T(lseek(fd, 0, SEEK_CUR));
	IN_CHILD(char c[64]; snprintf(c, 64, "echo no >&%d 2>/dev/null || echo closed", hidden);
		 execl("/bin/sh", "sh", "-c", c, NULL));
	IN_CHILD(dup2(fd, 1);
		 execve("/bin/echo", (char *[]){ "echo", "no environment", NULL }, (char *[]){ NULL }));
	IN_CHILD(execl("/nonexistent", "x", NULL); T(write(fd, "after exec\n", 11)));
	show("f");
	T(write(fd, "end", 3));
	show("f");
}

/* Run by the next case in a fresh image: what is descriptor 7? */
CASE(child_looks_at_its_descriptor)
{
	char c;
	int flags = fcntl(7, F_GETFL);

	if (flags < 0)
		return;
	say("mode %d append %d\n", flags & O_ACCMODE, (flags & O_APPEND) != 0);
	T(read(7, &c, 1));
	T(write(7, "heir", 4));
	T(fcntl(7, F_SETFL, 0));
	T(write(7, "HEIR", 4));
}

CASE(exec_inherits_flags)
{
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_APPEND};

	for (unsigned i = 0; i < 8; i++) {
		int fd;

		make("f", "0123456789");
		fd = open(at("f"), modes[i % 4]);
		if (i >= 4)
			T(fcntl(fd, F_SETFL, i == 7 ? 0 : O_APPEND));
		IN_CHILD(dup2(fd, 7); execl(self, self, "child_looks_at_its_descriptor", NULL));
		T(close(fd));
		show("f");
	}
}

CASE(exec_inherits_what_made_the_file)
{
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR};

	for (unsigned i = 0; i < 6; i++) {
		int fd, other;

		unlink(at("f"));
		fd = T(open(at("f"), modes[i % 3] | O_CREAT | (i < 3 ? 0 : O_EXCL), 0644));
		other = open(at("f"), O_WRONLY);
		T(write(other, "0123456789", 10));
		IN_CHILD(dup2(fd, 7); execl(self, self, "child_looks_at_its_descriptor", NULL));
		T(ftruncate(fd, 8));
		T(close(other));
		T(close(fd));
		show("f");
	}
}

/* Truncating needs a description that writes; the program's does not. */
CASE(exec_inherits_what_emptied_the_file)
{
	for (int i = 0; i < 2; i++) {
		int fd;

		make("f", "0123456789");
		fd = T(open(at("f"), O_RDONLY | O_TRUNC | (i ? O_DIRECT : 0)));
		system("printf abcdefgh >> $P/f");
		IN_CHILD(dup2(fd, 7); execl(self, self, "child_looks_at_its_descriptor", NULL));
		IN_CHILD(T(write(fd, "child", 5)); T(ftruncate(fd, 3)));
		T(write(fd, "x", 1));
		T(close(fd));
		show("f");
	}
}

/* The flags are the description's: whoever has it sees what another process has made of them. */
CASE(flags_of_a_description_that_processes_share)
{
	static const int modes[] = {O_RDWR, O_RDWR | O_APPEND};

	for (unsigned i = 0; i < 2; i++) {
		int fd, other;

		make("f", "0123456789");
		fd = open(at("f"), modes[i]);
		other = open(at("f"), O_WRONLY | O_APPEND);
		T(write(fd, "a", 1));
		IN_CHILD(fcntl(fd, F_SETFL, O_APPEND));
		T(fcntl(fd, F_GETFL) & O_APPEND);
		T(write(other, "other", 5));
		T(write(fd, "b", 1));
		T(pwrite(fd, "B", 1, 2));
		show("f");
		T(fcntl(fd, F_GETSIG));
		for (int sig = 65; sig > 47; sig--) {
			T(fcntl(fd, F_SETSIG, sig));
			T(fcntl(fd, F_GETSIG));
			T(fcntl(fd, F_GETFL) & (O_APPEND | O_DIRECT));
		}
		IN_CHILD(fcntl(fd, F_SETFL, 0));
		T(pwrite(fd, "C", 1, 2));
		T(fcntl(fd, F_GETFL) & O_APPEND);
		T(lseek(fd, 3, SEEK_SET));
		T(write(fd, "c", 1));
		IN_CHILD(T(write(fd, "d", 1)); fcntl(fd, F_SETFL, O_APPEND));
		T(copy_file_range(other, NULL, fd, NULL, 1, 0));
		IN_CHILD(T(write(fd, "e", 1)); fcntl(fd, F_SETFL, O_NONBLOCK));
		T(write(fd, "f", 1));
		show("f");
		T(close(other));
		T(close(fd));
	}
}

CASE(vfork_and_spawn)
{
	posix_spawn_file_actions_t fa;
	extern char **environ;
	int fd = T(rw("f"));
	pid_t pid;

	T(write(fd, "one\n", 4));
	pid = vfork();
	if (pid == 0) {
		dup2(fd, 1);
		execl("/bin/echo", "echo", "vforked", NULL);
		_exit(9);
	}
	say_child(pid);
	pid = vfork();
	if (pid == 0)
		_exit(3);
	say_child(pid);
	T(write(fd, "two\n", 4));
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, fd, 1);
	V(posix_spawn(&pid, "/bin/echo", &fa, NULL, (char *[]){"echo", "spawned", NULL}, environ));
	say_child(pid);
	T(write(fd, "three\n", 6));
	show("f");
}

CASE(popen_and_system)
{
	char line[64] = "";
	FILE *p;
	int fd = T(rw("f"));

	T(write(fd, "one\n", 4));
	T(system("cat $P/f; echo two >>$P/f"));
	p = popen("cat $P/f; echo three >>$P/f", "r");
	while (fgets(line, sizeof line, p))
		say("popen: %s", line);
	V(pclose(p));
	p = popen("cat >>$P/f", "w");
	fputs("four\n", p);
	V(pclose(p));
	show("f");
}

CASE(passed_over_a_socket)
{
	int sv[2], fd = T(rw("f"));
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} u = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {"x", 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof u};

	T(write(fd, "one", 3));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	memcpy(CMSG_DATA(&u.h), &fd, sizeof fd);
	T(sendmsg(sv[0], &m, 0));
	IN_CHILD(char b[4]; iov.iov_base = b; close(fd); T(recvmsg(sv[1], &m, 0));
		 memcpy(&fd, CMSG_DATA(&u.h), sizeof fd); T(write(fd, "two", 3)));
	T(write(fd, "three", 5));
	show("f");
}

CASE(passed_over_a_socket_in_a_batch)
{
	int i, sv[2], fd = T(rw("f"));
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} u[2] = { { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } },
		   { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } } };
	struct iovec iov = {"x", 1};
	struct mmsghdr m[2];

	for (i = 0; i < 2; i++) {
		memcpy(CMSG_DATA(&u[i].h), &fd, sizeof fd);
		m[i].msg_hdr = (struct msghdr){
			.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u[i], .msg_controllen = sizeof u[i]
		};
	}
	T(write(fd, "one", 3));
	T(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	T(sendmmsg(sv[0], m, 2, 0));
	IN_CHILD(char b[4]; iov.iov_base = b; close(fd); T(recvmmsg(sv[1], m, 2, 0, NULL));
		 memcpy(&fd, CMSG_DATA(&u[1].h), sizeof fd); T(write(fd, "two", 3)));
	T(write(fd, "three", 5));
	show("f");
}

static void end(const char *how)
{
	pid_t pid = fork();

	if (pid == 0) {
		FILE *f = fopen(at(how), "w");
		int fd = open(at(how), O_WRONLY | O_APPEND);

		fprintf(f, "buffered ");
		write(fd, "written ", 8);
		if (!strcmp(how, "exit"))
			exit(3);
		if (!strcmp(how, "_exit"))
			_exit(4);
		if (!strcmp(how, "quick_exit"))
			quick_exit(5);
		if (!strcmp(how, "_Exit"))
			_Exit(6);
		if (!strcmp(how, "abort"))
			abort();
		if (!strcmp(how, "kill"))
			raise(SIGKILL);
		if (!strcmp(how, "term"))
			raise(SIGTERM);
		if (!strcmp(how, "segv"))
			*(volatile int *)8 = 1;
		if (!strcmp(how, "exec"))
			execl("/bin/true", "true", NULL);
		if (!strcmp(how, "thread"))
			pthread_exit(NULL);
	}
	say_child(pid);
	show(how);
}

CASE(ends_of_a_process)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	end("exit");
	end("_exit");
	end("quick_exit");
	end("_Exit");
	end("abort");
	end("kill");
	end("term");
	end("segv");
	end("exec");
	end("thread");
}

static FILE *late;
static void write_late(void) { fprintf(late, "atexit "); }
static __attribute__((destructor)) void write_last(void)
{
	if (late)
		fprintf(late, "destructor ");
}

CASE(written_while_ending)
{
	IN_CHILD(late = fopen(at("f"), "w"); atexit(write_late); fprintf(late, "main "); exit(0));
	show("f");
	IN_CHILD(int fd = dup(1); freopen(at("g"), "w", stdout); atexit(write_late); late = stdout;
		 printf("main "); close(fd); exit(0));
	show("g");
}

CASE(standard_streams_on_files)
{
	make("in", "line one\nline two\n");
	T(system("sh -c 'read a; echo \"$a\"; echo err >&2; cat' <$P/in >$P/out 2>$P/err"));
	show("out");
	show("err");
	T(system("$BIN/fds standard_output_closed_late >$P/late; cat $P/late"));
}

CASE(standard_output_closed_late)
{
	printf("printed ");
	write(1, "written ", 8);
	fflush(stdout);
	printf("at exit");
}

CASE(signal_handler_writes)
{
	static int fd;
	struct itimerval it = {{0, 1000}, {0, 1000}}, off = {0};
	static volatile int hits;
	void handler(int sig)
	{
		(void)sig;
		int e = errno;
		if (write(fd, "s", 1) == 1)
			hits++;
		errno = e;
	}
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct stat st;
	int n = 0, other = rw("other");

	fd = open(at("f"), O_WRONLY | O_CREAT | O_APPEND, 0644);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	while (hits < 30) {
		n += write(fd, "m", 1) == 1;
		pwrite(other, "x", 1, n);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	fstat(fd, &st);
	T(st.st_size == n + hits);
	T(unlink(at("f")));
	T(unlink(at("other")));
}
