/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signal handlers that come in the middle of calls on files, and call the same functions: nothing may hang, be lost or
 * be torn, and what sigaction() and its relatives promise must hold. Most cases count on the timer to hit all sorts of
 * moments; what they print does not depend on which.
 */
#include "posix.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

#define LINE 64

static volatile sig_atomic_t hits;
static volatile bool stop;

static void catch(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	sigaction(sig, &sa, NULL);
}

static void every_us(long us)
{
	struct itimerval it = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &it, NULL);
}

static void count(int sig)
{
	(void)sig;
	hits++;
}

static void nothing_blocked(void)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&set, sig) == 1)
			say("signal %d is still blocked\n", sig);
}

/* ---- handlers that write ---- */

static int shared_fd; /* opened for appending */
static volatile int written[2]; /* lines in it: of main, of the handler */

static void append_line(char who)
{
	char line[LINE];

	memset(line, who, sizeof line);
	line[LINE - 1] = '\n';
	if (write(shared_fd, line, sizeof line) == sizeof line)
		__atomic_fetch_add(&written[who == 'h'], 1, __ATOMIC_RELAXED);
}

static void handler_appends(int sig)
{
	int saved = errno;

	(void)sig;
	append_line('h');
	hits++;
	errno = saved;
}

/* Every line is whole, and there are as many as were written; how many is chance, so the file goes. */
static void check_lines(const char *name)
{
	char line[LINE];
	int seen[2] = {0}, bad = 0, fd = open(at(name), O_RDONLY);
	ssize_t n;

	while ((n = read(fd, line, sizeof line)) > 0) {
		bool whole = n == LINE && line[LINE - 1] == '\n' && (line[0] == 'h' || line[0] == 'm');

		for (int i = 0; whole && i < LINE - 1; i++)
			whole = line[i] == line[0];
		bad += !whole;
		seen[line[0] == 'h']++;
	}
	close(fd);
	say("%s: torn %d, main %s, handler %s\n", name, bad, seen[0] == written[0] ? "all" : "not all",
	    seen[1] == written[1] ? "all" : "not all");
	if (seen[0] != written[0] || seen[1] != written[1])
		say("%d of %d, %d of %d\n", seen[0], written[0], seen[1], written[1]);
	unlink(at(name));
}

static char dir[512]; /* of the case; at() is not for several threads, nor for handlers */

static void start(const char *name)
{
	strcpy(dir, at(""));
	shared_fd = open(at(name), O_WRONLY | O_CREAT | O_APPEND, 0644);
}

/* All sorts of calls, on other files and on the shared one. */
static void work(int nr)
{
	char name[2][600], buf[512];
	struct stat st;
	int fd, i, wrong = 0;

	snprintf(name[0], sizeof name[0], "%s/work%d", dir, nr);
	snprintf(name[1], sizeof name[1], "%s/moved%d", dir, nr);
	memset(buf, 'w', sizeof buf);
	for (i = 0; !stop; i++) {
		append_line('m');
		fd = open(name[0], O_RDWR | O_CREAT | O_TRUNC, 0644);
		wrong += write(fd, buf, sizeof buf) != sizeof buf;
		wrong += pwrite(fd, buf, 100, 1000) != 100;
		wrong += pread(fd, buf, 512, 0) != 512 || buf[511] != 'w';
		wrong += lseek(fd, 0, SEEK_END) != 1100;
		wrong += fstat(fd, &st) || st.st_size != 1100;
		wrong += i % 16 == 0 && fsync(fd);
		wrong += ftruncate(fd, 600) != 0;
		wrong += close(dup(fd)) != 0;
		wrong += close(fd) != 0;
		wrong += stat(name[0], &st) || st.st_size != 600;
		wrong += rename(name[0], name[1]) || chmod(name[1], 0600) || unlink(name[1]);
	}
	say("worker: %d wrong\n", wrong);
}

static void *worker(void *arg)
{
	work((int)(intptr_t)arg);
	return NULL;
}

static void *stopper(void *arg)
{
	for (int ms = 0; hits < (int)(intptr_t)arg && ms < 15000; ms++)
		usleep(1000);
	stop = true;
	return NULL;
}

CASE(handler_appends_to_what_main_appends_to)
{
	pthread_t t;
	sigset_t set;

	start("lines");
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_create(&t, NULL, stopper, (void *)300);
	catch(SIGALRM, handler_appends, SA_RESTART);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	every_us(1000);
	work(0);
	every_us(0);
	pthread_join(t, NULL);
	say("%s\n", hits >= 300 ? "enough hits" : "few hits");
	T(close(shared_fd));
	check_lines("lines");
	nothing_blocked();
}

CASE(handler_appends_among_four_threads)
{
	pthread_t t[4];

	start("lines");
	catch(SIGALRM, handler_appends, SA_RESTART);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, worker, (void *)(intptr_t)i);
	every_us(1000);
	stopper((void *)300);
	every_us(0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	T(close(shared_fd));
	check_lines("lines");
}

static volatile int made;

static void handler_makes_file(int sig)
{
	int saved = errno, fd;
	char name[600];

	(void)sig;
	snprintf(name, sizeof name, "%s/made%d", dir, made);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd >= 0 && write(fd, "made\n", 5) == 5 && !close(fd))
		made++;
	hits++;
	errno = saved;
}

CASE(handler_makes_files)
{
	pthread_t t;
	sigset_t set;
	struct stat st;
	char name[16];
	int whole = 0;

	start("lines");
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_create(&t, NULL, stopper, (void *)100);
	catch(SIGALRM, handler_makes_file, SA_RESTART);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	every_us(10000);
	work(0);
	every_us(0);
	pthread_join(t, NULL);
	for (int i = 0; i < made; i++) {
		snprintf(name, sizeof name, "made%d", i);
		whole += !stat(at(name), &st) && st.st_size == 5 && !unlink(at(name));
	}
	say("%s\n", made == hits && whole == made ? "all made" : "not all made");
	check_lines("lines");
}

static volatile int born, reaped;

static void handler_forks(int sig)
{
	int saved = errno;
	pid_t pid;

	(void)sig;
	if (born < 20) {
		pid = fork();
		if (pid == 0) {
			append_line('h');
			_exit(0);
		}
		born += pid > 0;
	}
	hits++;
	errno = saved;
}

static void handler_reaps(int sig)
{
	int saved = errno, status;

	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0)
		reaped += status == 0;
	errno = saved;
}

CASE(handler_forks_and_child_writes)
{
	char byte;
	int i, fd;

	start("lines");
	fd = open(at("other"), O_RDWR | O_CREAT, 0644);
	catch(SIGCHLD, handler_reaps, SA_RESTART);
	catch(SIGALRM, handler_forks, SA_RESTART);
	every_us(5000);
	for (i = 0; reaped < 20 && i < 1000000; i++) {
		append_line('m');
		pwrite(fd, "x", 1, i);
		pread(fd, &byte, 1, i);
	}
	every_us(0);
	while (reaped < born)
		usleep(1000);
	say("born %d, reaped %d\n", born, reaped);
	written[1] = born;
	T(close(fd));
	T(close(shared_fd));
	check_lines("lines");
	T(unlink(at("other")));
}

/* What a section blocks must not be inherited by another program. */
CASE(children_start_with_nothing_blocked)
{
	static char *const argv[] = {"grep", "-q", "SigBlk:[[:space:]]*0000000000000000", "/proc/self/status", NULL};
	int status, fine[3] = {0};
	pid_t pid;

	start("lines");
	catch(SIGALRM, handler_appends, SA_RESTART);
	every_us(1000);
	for (int i = 0; i < 60; i++) {
		append_line('m');
		if (i % 3 == 0) {
			posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
		} else if (i % 3 == 1 && (pid = fork()) == 0) {
			append_line('m'); /* so that exec has something to end */
			execvp(argv[0], argv);
			_exit(127);
		} else if (i % 3 == 2 && (pid = vfork()) == 0) {
			execvp(argv[0], argv);
			_exit(127);
		}
		written[0] += i % 3 == 1;
		while (waitpid(pid, &status, 0) < 0)
			;
		fine[i % 3] += status == 0;
	}
	every_us(0);
	say("%d %d %d\n", fine[0], fine[1], fine[2]);
	T(close(shared_fd));
	check_lines("lines");
	nothing_blocked();
}

/* ---- calls that wait ---- */

/* Until alarms(false), again and again: on a busy machine the first may come before the wait. */
static void alarms(bool on)
{
	every_us(on ? 50000 : 0);
	if (!on)
		say("%s\n", hits ? "alarmed" : "not alarmed");
	hits = 0;
}

/* A child takes the lock, says so, and keeps it until it is killed. */
static pid_t holder(int how)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
	int ready[2], fd;
	char byte;
	pid_t pid;

	pipe(ready);
	pid = fork();
	if (pid == 0) {
		catch(SIGALRM, SIG_DFL, 0);
		fd = open(at("f"), O_RDWR);
		if (how == LOCK_EX)
			flock(fd, LOCK_EX);
		else
			fcntl(fd, how, &fl);
		write(ready[1], "r", 1);
		alarm(60);
		for (;;)
			pause();
	}
	close(ready[1]);
	read(ready[0], &byte, 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

CASE(alarm_ends_waiting_for_a_lock)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};
	pid_t pid;
	int fd;

	make("f", "locked");
	fd = open(at("f"), O_RDWR);
	catch(SIGALRM, count, 0);
	pid = holder(F_SETLK);
	alarms(true);
	T(fcntl(fd, F_SETLKW, &fl));
	alarms(false);
	T(lseek(fd, 12, SEEK_SET));
	alarms(true);
	T(lockf(fd, F_LOCK, 1));
	alarms(false);
	end(pid);
	pid = holder(F_OFD_SETLK);
	alarms(true);
	T(fcntl(fd, F_OFD_SETLKW, &fl));
	alarms(false);
	end(pid);
	pid = holder(LOCK_EX);
	alarms(true);
	T(flock(fd, LOCK_EX));
	alarms(false);
	end(pid);
	T(flock(fd, LOCK_EX));
	T(fcntl(fd, F_SETLKW, &fl));
	T(write(fd, "after", 5));
	T(close(fd));
	nothing_blocked();
}

static volatile pid_t holding;

static void release(int sig)
{
	(void)sig;
	if (++hits == 3)
		kill(holding, SIGKILL);
}

/* The handler ends who has the lock: then the call, which started again, gets it. */
CASE(alarm_restarts_waiting_for_a_lock)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};
	int fd;

	make("f", "locked");
	fd = open(at("f"), O_RDWR);
	catch(SIGALRM, release, SA_RESTART);
	holding = holder(F_SETLK);
	alarms(true);
	T(fcntl(fd, F_SETLKW, &fl));
	alarms(false);
	T(waitpid(holding, NULL, 0) == holding);
	holding = holder(LOCK_EX);
	alarms(true);
	T(flock(fd, LOCK_EX));
	alarms(false);
	T(waitpid(holding, NULL, 0) == holding);
	T(close(fd));
}

CASE(alarm_ends_other_waits)
{
	int fds[2], fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	char byte;

	write(fd, "x", 1);
	pipe(fds);
	catch(SIGALRM, count, 0);
	alarms(true);
	T(read(fds[0], &byte, 1));
	alarms(false);
	alarms(true);
	T(pause());
	alarms(false);
	T(mkfifo(at("fifo"), 0600));
	alarms(true);
	T(open(at("fifo"), O_WRONLY));
	alarms(false);
	alarms(true);
	T(open(at("fifo"), O_RDONLY));
	alarms(false);
	T(write(fd, "y", 1));
	T(close(fd));
	nothing_blocked();
}

/* ---- what sigaction() and its relatives tell ---- */

static void one(int sig) { (void)sig; }
static void two(int sig, siginfo_t *info, void *context) { (void)sig, (void)info, (void)context; }

static const char *name_of(void *handler)
{
	return handler == (void *)SIG_DFL    ? "default"
	       : handler == (void *)SIG_IGN  ? "ignore"
	       : handler == (void *)SIG_ERR  ? "error"
	       : handler == (void *)SIG_HOLD ? "hold"
	       : handler == (void *)one      ? "one"
	       : handler == (void *)two      ? "two"
	       : handler == (void *)count    ? "count"
					     : "a stranger";
}

static void tell(int sig)
{
	struct sigaction old;

	if (sigaction(sig, NULL, &old)) {
		say("signal %d: %s\n", sig, strerrorname_np(errno));
		return;
	}
	say("signal %d: %s, flags %#x, mask", sig, name_of((void *)old.sa_handler), (unsigned)old.sa_flags);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&old.sa_mask, i) == 1)
			say(" %d", i);
	say("\n");
}

CASE(sigaction_tells_what_was_set)
{
	static const int flags[] = {0, SA_RESTART, SA_NODEFER, SA_ONSTACK | SA_NOCLDSTOP, (int)SA_RESETHAND,
				    SA_RESTART | SA_SIGINFO | SA_NODEFER};
	struct sigaction sa = {0}, old;

	tell(SIGUSR1);
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		sa.sa_flags = flags[i];
		if (flags[i] & SA_SIGINFO)
			sa.sa_sigaction = two;
		else
			sa.sa_handler = one;
		sigemptyset(&sa.sa_mask);
		sigaddset(&sa.sa_mask, (int)i + 1);
		T(sigaction(SIGUSR1, &sa, &old));
		say("was %s, flags %#x\n", name_of((void *)old.sa_handler), (unsigned)old.sa_flags);
		tell(SIGUSR1);
	}
	T(sigaction(SIGUSR1, &sa, &sa));
	say("in place: %s, flags %#x\n", name_of((void *)sa.sa_handler), (unsigned)sa.sa_flags);
	catch(SIGUSR1, SIG_IGN, 0);
	tell(SIGUSR1);
	catch(SIGUSR1, one, 0);
	catch(SIGUSR1, SIG_DFL, 0);
	tell(SIGUSR1);
	T(sigaction(SIGKILL, &sa, NULL));
	T(sigaction(SIGSTOP, NULL, &old));
	T(sigaction(0, &sa, NULL));
	T(sigaction(65, &sa, NULL));
	T(sigaction(32, &sa, NULL));
	T(sigaction(-1, NULL, NULL));
	catch(SIGUSR2, one, 0);
	IN_CHILD(tell(SIGUSR2));
	system("kill -USR2 $$; echo not reached"); /* caught here, but not in another program */
	tell(SIGINT);
}

CASE(relatives_of_sigaction)
{
	say("%s\n", name_of((void *)signal(SIGUSR1, one)));
	say("%s\n", name_of((void *)signal(SIGUSR1, SIG_IGN)));
	say("%s\n", name_of((void *)signal(SIGUSR1, count)));
	tell(SIGUSR1);
	raise(SIGUSR1);
	raise(SIGUSR1);
	T(hits);
	say("%s %s\n", name_of((void *)signal(SIGKILL, one)), strerrorname_np(errno));
	say("%s %s\n", name_of((void *)signal(99, one)), strerrorname_np(errno));
	say("%s %s\n", name_of((void *)signal(SIGUSR1, SIG_ERR)), strerrorname_np(errno));
	T(siginterrupt(SIGUSR1, 1));
	tell(SIGUSR1);
	signal(SIGUSR1, one);
	tell(SIGUSR1);
	T(siginterrupt(SIGUSR1, 0));
	tell(SIGUSR1);
	T(siginterrupt(99, 0));
	say("%s\n", name_of((void *)sysv_signal(SIGUSR1, count)));
	tell(SIGUSR1);
	raise(SIGUSR1);
	tell(SIGUSR1);
	T(hits);
	say("%s\n", name_of((void *)sigset(SIGUSR1, count)));
	tell(SIGUSR1);
	say("%s\n", name_of((void *)sigset(SIGUSR1, SIG_HOLD)));
	raise(SIGUSR1);
	T(hits);
	say("%s\n", name_of((void *)sigset(SIGUSR1, count)));
	T(hits);
	nothing_blocked();
	T(sigignore(SIGUSR1));
	tell(SIGUSR1);
}

/* ---- what comes with a signal that had to wait: sent by a thread while this one writes ---- */

static pthread_t main_thread;
static void busy_until_stopped(void)
{
	char buf[512] = "busy";
	int fd = open(at("busy"), O_RDWR | O_CREAT, 0644);

	for (int i = 0; !stop && i < 10000000; i++)
		pwrite(fd, buf, sizeof buf, i % 1000 * 512);
	T(close(fd));
	T(unlink(at("busy")));
}

static volatile int in_handler, deepest, bad_info;
static volatile int values, next_value;

static void check_info(int sig, siginfo_t *info, void *context)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	if (info->si_signo != sig || info->si_code != SI_QUEUE || info->si_pid != getpid() ||
	    info->si_uid != getuid() || !context || !sigismember(&set, sig) || !sigismember(&set, SIGUSR2))
		bad_info++;
	if (info->si_value.sival_int != next_value++)
		values++;
	append_line('h');
	hits++;
}

static void *queues_values(void *arg)
{
	union sigval value;

	(void)arg;
	for (value.sival_int = 0; value.sival_int < 2000; value.sival_int++) {
		while (sigqueue(getpid(), SIGRTMIN + 3, value))
			usleep(100);
		if (value.sival_int % 10 == 0)
			usleep(300);
	}
	while (hits < 2000)
		usleep(100);
	stop = true;
	return NULL;
}

/* Block everything in the threads that are made while it runs. */
static void start_quietly(pthread_t *t, void *(*fn)(void *))
{
	sigset_t all, before;

	main_thread = pthread_self();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(t, NULL, fn, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

CASE(queued_signals_keep_values_and_order)
{
	struct sigaction sa = {.sa_sigaction = check_info, .sa_flags = SA_SIGINFO | SA_RESTART};
	pthread_t t;

	start("lines");
	sigaddset(&sa.sa_mask, SIGUSR2);
	sigaction(SIGRTMIN + 3, &sa, NULL);
	start_quietly(&t, queues_values);
	busy_until_stopped();
	pthread_join(t, NULL);
	say("%d signals, %d bad, %d out of order\n", hits, bad_info, values);
	check_lines("lines");
	nothing_blocked();
}

static void *kills_main(void *arg)
{
	(void)arg;
	for (int i = 0; i < 500; i++) {
		pthread_kill(main_thread, SIGUSR1);
		usleep(200);
	}
	stop = true;
	return NULL;
}

/* With SA_NODEFER a handler may be interrupted by its own signal. */
static void nests(int sig)
{
	(void)sig;
	in_handler++;
	if (in_handler > deepest)
		deepest = in_handler;
	append_line('h');
	if (in_handler == 1) {
		hits++;
		raise(SIGUSR1);
	}
	in_handler--;
}

CASE(handler_interrupted_by_its_own_signal)
{
	pthread_t t;

	start("lines");
	catch(SIGUSR1, nests, SA_NODEFER | SA_RESTART);
	start_quietly(&t, kills_main);
	busy_until_stopped();
	pthread_join(t, NULL);
	say("%s, %s\n", hits > 10 ? "some" : "none", deepest > 1 ? "nested" : "not nested");
	check_lines("lines");
	nothing_blocked();
}

static char alternate[1 << 16];
static volatile int off_stack;

static void on_stack(int sig)
{
	char here;

	(void)sig;
	if (&here < alternate || &here >= alternate + sizeof alternate)
		off_stack++;
	append_line('h');
	hits++;
}

CASE(handler_on_an_alternate_stack)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, old;
	pthread_t t;

	T(sigaltstack(&stack, NULL));
	start("lines");
	catch(SIGUSR1, on_stack, SA_ONSTACK | SA_RESTART);
	start_quietly(&t, kills_main);
	busy_until_stopped();
	pthread_join(t, NULL);
	say("%s, %d off the stack\n", hits > 10 ? "some" : "none", off_stack);
	T(sigaltstack(NULL, &old));
	T(old.ss_flags);
	check_lines("lines");
}

/* One shot: handled once, then the default, which is to ignore SIGURG. */
static void *kills_once(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		pthread_kill(main_thread, SIGURG);
		usleep(1000);
	}
	stop = true;
	return NULL;
}

CASE(handler_for_one_time)
{
	pthread_t t;

	for (int i = 0; i < 20; i++) {
		catch(SIGURG, count, (int)SA_RESETHAND);
		stop = false;
		start_quietly(&t, kills_once);
		busy_until_stopped();
		pthread_join(t, NULL);
	}
	T(hits);
	tell(SIGURG);
	nothing_blocked();
}

/* ---- handlers that do not return ---- */

static sigjmp_buf back;
static volatile bool may_jump;

static void jumps(int sig)
{
	(void)sig;
	hits++;
	if (may_jump)
		siglongjmp(back, 1);
}

CASE(handler_jumps_out)
{
	int volatile busy_fd;
	char line[LINE];
	int volatile fd, rounds = 0;
	struct stat st;

	start("lines");
	busy_fd = open(at("busy"), O_RDWR | O_CREAT, 0644);
	memset(line, 'm', sizeof line);
	catch(SIGALRM, jumps, 0);
	every_us(1000);
	while (rounds < 200) {
		if (sigsetjmp(back, 1)) {
			rounds++;
			continue;
		}
		may_jump = true;
		for (;;) { /* until the jump */
			pwrite(busy_fd, line, sizeof line, rounds * LINE);
			pread(busy_fd, line, sizeof line, 0);
			fstat(busy_fd, &st);
			close(dup(busy_fd));
		}
	}
	may_jump = false;
	every_us(0);
	T(write(busy_fd, "end\n", 4));
	T(fsync(busy_fd));
	T(fstat(busy_fd, &st));
	T(close(busy_fd));
	fd = open(at("busy"), O_RDWR);
	T(read(fd, line, 4));
	say("%.4s", line);
	T(close(fd));
	/* Nobody has it open any more, and its data go with it. */
	T(unlink(at("busy")));
	append_line('m');
	check_lines("lines");
	nothing_blocked();
}

/* The classic: a lock with a time limit. */
CASE(handler_jumps_out_of_a_wait_for_a_lock)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};
	pid_t pid;
	int fd;

	make("f", "locked");
	fd = open(at("f"), O_RDWR);
	pid = holder(F_SETLK);
	catch(SIGALRM, jumps, 0);
	may_jump = true;
	if (!sigsetjmp(back, 1)) {
		every_us(50000);
		fcntl(fd, F_SETLKW, &fl);
		say("not reached\n");
	}
	every_us(0);
	end(pid);
	T(write(fd, "more", 4));
	T(close(fd));
	show("f");
	T(unlink(at("f")));
	nothing_blocked();
}

/* ---- no call leaves anything switched off ---- */

static int calls;

/* Make a call, whatever it returns; a signal after it is handled at once. */
#define THEN(call)                                                                                                \
	do {                                                                                                      \
		(void)(call);                                                                                     \
		raise(SIGUSR1);                                                                                   \
		if (hits != ++calls) {                                                                            \
			say("after %s: not handled\n", #call);                                                    \
			hits = calls;                                                                             \
		}                                                                                                 \
	} while (0)

static void on_descriptor(int fd)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = 1};
	struct timespec times[2] = {{1, 0}, {1, 0}};
	struct iovec iov = {(char[]){"vector"}, 6};
	struct stat st;
	char buf[16];
	void *map;

	THEN(write(fd, "0123456789", 10));
	THEN(write(fd, "0123456789", 0));
	THEN(write(fd, NULL, 1));
	THEN(pwrite(fd, "x", 1, -1));
	THEN(pwrite(fd, "x", 1, 20));
	THEN(writev(fd, &iov, 1));
	THEN(pwritev(fd, &iov, 1, 3));
	THEN(pwritev2(fd, &iov, 1, 3, RWF_SYNC));
	THEN(pwritev2(fd, &iov, 1, 3, 1 << 30));
	THEN(lseek(fd, 0, SEEK_SET));
	THEN(lseek(fd, -1, SEEK_SET));
	THEN(lseek(fd, 0, SEEK_HOLE));
	THEN(read(fd, buf, 4));
	THEN(read(fd, NULL, 4));
	THEN(pread(fd, buf, 4, 2));
	THEN(readv(fd, &iov, 1));
	THEN(preadv(fd, &iov, 1, 0));
	THEN(preadv2(fd, &iov, 1, -1, 0));
	THEN(fstat(fd, &st));
	THEN(ftruncate(fd, 15));
	THEN(ftruncate(fd, -1));
	THEN(fallocate(fd, 0, 0, 30));
	THEN(posix_fallocate(fd, 0, 40));
	THEN(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	THEN(readahead(fd, 0, 10));
	THEN(fsync(fd));
	THEN(fdatasync(fd));
	THEN(sync_file_range(fd, 0, 0, 0));
	THEN(syncfs(fd));
	THEN(fchmod(fd, 0600));
	THEN(fchown(fd, -1, -1));
	THEN(futimens(fd, times));
	THEN(fcntl(fd, F_SETLK, &fl));
	THEN(fcntl(fd, F_GETLK, &fl));
	THEN(fcntl(fd, F_SETLK, NULL));
	THEN(lockf(fd, F_TEST, 1));
	THEN(lockf(fd, F_ULOCK, 1));
	THEN(lockf(fd, 99, 1));
	THEN(flock(fd, LOCK_EX));
	THEN(flock(fd, LOCK_UN));
	THEN(flock(fd, 99));
	THEN(fcntl(fd, F_GETFL));
	THEN(fcntl(fd, F_SETFL, O_APPEND));
	THEN(write(fd, "appended", 8));
	THEN(fcntl(fd, 9999));
	THEN(close(dup(fd)));
	THEN(close(fcntl(fd, F_DUPFD, 0)));
	THEN(dup2(fd, 100));
	THEN(dup2(fd, fd));
	THEN(dup3(fd, fd, 0));
	THEN(dup2(fd, -1));
	THEN(dup3(fd, 101, O_CLOEXEC));
	THEN(dup2(2, 100));
	THEN(close(100));
	THEN(close_range(100, 101, 0));
	THEN(map = mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0));
	THEN(munmap(map, 10));
	THEN(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0));
	THEN(dprintf(fd, "%d", 1));
	THEN(fclose(fdopen(dup(fd), "r+")));
}

static void on_names(void)
{
	int sub;
	struct stat st;
	char buf[600];

	THEN(stat(at("f"), &st));
	THEN(lstat(at("f"), &st));
	THEN(access(at("f"), R_OK));
	THEN(truncate(at("f"), 5));
	THEN(truncate(at("none"), 5));
	THEN(chmod(at("f"), 0644));
	THEN(chmod(at("none"), 0644));
	THEN(chown(at("f"), -1, -1));
	THEN(utimensat(AT_FDCWD, at("f"), NULL, 0));
	THEN(link(at("f"), at("g")));
	THEN(rename(at("g"), at("h")));
	THEN(rename(at("none"), at("h")));
	THEN(symlink("f", at("s")));
	THEN(readlink(at("s"), buf, sizeof buf));
	THEN(close(open(at("s"), O_RDWR)));
	THEN(open(at("none"), O_RDWR));
	THEN(open(at("f"), O_CREAT | O_EXCL, 0600));
	THEN(close(open(at("f"), O_RDWR | O_TRUNC)));
	THEN(close(open(at("f"), O_RDWR | O_APPEND)));
	THEN(mkdir(at("d"), 0755));
	THEN(sub = open(at("d"), O_RDONLY | O_DIRECTORY));
	THEN(close(openat(sub, "f", O_RDWR | O_CREAT, 0644)));
	THEN(fstatat(sub, "f", &st, 0));
	THEN(unlinkat(sub, "f", 0));
	THEN(close(sub));
	THEN(rmdir(at("d")));
	THEN(unlink(at("s")));
	THEN(unlink(at("h")));
	THEN(unlink(at("none")));
	THEN(fclose(fopen(at("f"), "w")));
	THEN(chdir(getenv("P")));
	THEN(getcwd(buf, sizeof buf));
	THEN(chdir("none"));
	THEN(realpath("f", buf));
}

CASE(handlers_run_after_every_call)
{
	int fd, status;
	pid_t pid;

	catch(SIGUSR1, count, 0);
	THEN(fd = open(at("f"), O_RDWR | O_CREAT, 0644));
	on_descriptor(fd);
	on_names();
	THEN(pid = fork());
	if (pid == 0)
		_exit(hits != calls);
	THEN(waitpid(pid, &status, 0));
	T(status);
	THEN(pid = vfork());
	if (pid == 0)
		_exit(hits != calls);
	THEN(waitpid(pid, &status, 0));
	T(status);
	THEN(system("true"));
	THEN(pclose(popen("true", "r")));
	THEN(execl("/nonexistent", "none", NULL));
	THEN(sync());
	THEN(close(fd));
	nothing_blocked();
	T(unlink(at("f")));
}

/* ---- faults ---- */

static char *page_before_nothing(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(map, 'p', page);
	mprotect(map + page, page, PROT_NONE);
	return map + page;
}

static void use_bad_addresses(void)
{
	char *none = page_before_nothing(), *readonly;
	struct iovec iov[3] = {{"good", 4}, {none, 4}, {"more", 4}};
	struct stat st;
	int fd = open(at("f"), O_RDWR | O_CREAT | O_TRUNC, 0644);

	T(write(fd, none, 100));
	T(write(fd, (void *)1, 100));
	T(write(fd, (void *)-100L, 50));
	T(write(fd, (void *)0x8000000000000000, 50));
	T(write(fd, none, 0));
	T(pwrite(fd, none, 200000, 0));
	T(write(fd, none - 50, 100));
	T(writev(fd, iov, 3));
	T(writev(fd, &iov[1], 2));
	T(writev(fd, (void *)none, 2));
	T(writev(fd, (void *)-1L, 1));
	T(fcntl(fd, F_SETFL, O_APPEND));
	T(write(fd, none, 10));
	T(write(fd, "end", 3));
	T(fcntl(fd, F_SETFL, 0));
	T(fstat(fd, &st));
	T(st.st_size);
	T(lseek(fd, 0, SEEK_SET));
	T(read(fd, none, 10));
	T(read(fd, NULL, 10));
	readonly = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(read(fd, readonly, 10));
	T(pread(fd, none - 5, 10, 0));
	T(pread(fd, none, 10, 1000));
	T(read(fd, none - 5, 5));
	say("%.5s\n", none - 5);
	T(open(none, O_RDONLY));
	T(open((void *)1, O_RDWR | O_CREAT, 0644));
	T(stat(none, &st));
	T(unlink(none));
	T(rename(at("f"), none));
	T(rename(none, at("f")));
	T(mkdir(none, 0755));
	T(chmod(none, 0644));
	T(readlink(none, (char *)&st, sizeof st));
	T(chdir(none));
	T(truncate(none, 0));
	T(symlink("f", none));
	T(close(fd));
	show("f");
}

CASE(bad_addresses) { use_bad_addresses(); }

/* What several processes wrote in turns, read in one call to memory that ends within. */
CASE(bad_addresses_in_the_middle_of_a_large_read)
{
	enum { BLOCK = 4096, NR = 64 };
	char *map = mmap(NULL, 5 * NR * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), block[BLOCK];
	int fd;

	for (int child = 0; child < 4; child++) {
		if (!fork()) {
			fd = open(at("f"), O_WRONLY | O_CREAT, 0644);
			memset(block, 'a' + child, BLOCK);
			for (int i = 0; i < NR; i++)
				if (pwrite(fd, block, BLOCK, (4 * i + child) * BLOCK) != BLOCK)
					_exit(1);
			_exit(0);
		}
		wait(NULL);
	}
	fd = open(at("f"), O_RDONLY);
	for (int good = 0; good < 4 * NR; good += 37) {
		mprotect(map + good * BLOCK, BLOCK, PROT_NONE);
		T(pread(fd, map, 4 * NR * BLOCK, 0));
		T(pread(fd, map + 100, 4 * NR * BLOCK, 50));
		mprotect(map + good * BLOCK, BLOCK, PROT_READ | PROT_WRITE);
		for (int i = 0; i < good; i++)
			if (map[i * BLOCK + 300] != 'a' + i % 4 || map[i * BLOCK + BLOCK - 1] != 'a' + i % 4)
				say("block %d is wrong\n", i);
	}
	T(pread(fd, map, 5 * NR * BLOCK, 0));
	close(fd);
}

static void faulted(int sig)
{
	(void)sig;
	hits++;
	siglongjmp(back, 1);
}

CASE(bad_addresses_with_a_handler_of_faults)
{
	char *volatile none = page_before_nothing();

	tell(SIGSEGV);
	tell(SIGBUS);
	catch(SIGSEGV, faulted, 0);
	if (!sigsetjmp(back, 1))
		*none = 1;
	T(hits);
	tell(SIGSEGV);
	use_bad_addresses();
	T(hits);
	if (!sigsetjmp(back, 1))
		*none = 1;
	T(hits);
	catch(SIGSEGV, SIG_DFL, 0);
	tell(SIGSEGV);
	nothing_blocked();
}

CASE(faults_end_a_process_as_ever)
{
	char *volatile none = page_before_nothing();
	struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	IN_CHILD(*none = 1);
	IN_CHILD(raise(SIGSEGV));
	IN_CHILD(kill(getpid(), SIGBUS));
	IN_CHILD(abort());
	IN_CHILD(catch(SIGSEGV, one, (int)SA_RESETHAND); *none = 1);
	IN_CHILD(catch(SIGSEGV, SIG_IGN, 0); raise(SIGSEGV); say("lives\n"); *none = 1);
	IN_CHILD(signal(SIGSEGV, SIG_DFL); raise(SIGSEGV));
	tell(SIGSEGV);
	T(system("kill -SEGV $$"));
	T(system("trap '' SEGV; kill -SEGV $$; echo lives"));
}

/* ---- threads that are cancelled ---- */

static void *writes_until_cancelled(void *arg)
{
	char buf[100000] = "big";

	for (int i = 0;; i++) {
		append_line('h');
		pwrite(*(int *)arg, buf, i % 8 ? 64 : sizeof buf, 0);
		if (i % 16 == 0)
			close(open(at("other"), O_RDWR | O_CREAT, 0644));
		hits++;
	}
	return NULL;
}

CASE(cancelled_threads_leave_no_lock_behind)
{
	void *ended;
	pthread_t t;
	int fd = open(at("other"), O_RDWR | O_CREAT, 0644), cancelled = 0;

	start("lines");
	for (int i = 0; i < 50; i++) {
		hits = 0;
		pthread_create(&t, NULL, writes_until_cancelled, &fd);
		while (!hits)
			usleep(100);
		usleep((useconds_t)(i * 37 % 1000));
		pthread_cancel(t);
		pthread_join(t, &ended);
		cancelled += ended == PTHREAD_CANCELED;
		append_line('m');
		pwrite(fd, "x", 1, i);
	}
	T(cancelled);
	T(close(fd));
	T(close(shared_fd));
	T(unlink(at("other")));
	T(unlink(at("lines")));
}

static void say_mask(const char *what)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	say("%s:", what);
	for (int sig = 1; sig < 32; sig++)
		if (sigismember(&set, sig))
			say(" %d", sig);
	say("\n");
}

static void say_fault(int sig) { say("handled %d\n", sig); }

/* Masks that block the signals of faults are what the program made them, and one that is sent meanwhile waits. */
CASE(masks_that_block_faults)
{
	struct sigaction act = {.sa_handler = say_fault}, old;
	sigset_t set, pending;
	int status;

	sigfillset(&act.sa_mask);
	T(sigaction(SIGBUS, &act, NULL));
	T(sigaction(SIGBUS, NULL, &old));
	say("%d %d %d\n", sigismember(&old.sa_mask, SIGBUS), sigismember(&old.sa_mask, SIGSEGV), sigismember(&old.sa_mask, SIGUSR1));
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	sigaddset(&set, SIGUSR1);
	T(sigprocmask(SIG_BLOCK, &set, NULL));
	say_mask("blocked");
	T(kill(getpid(), SIGBUS));
	say("sent\n");
	sigpending(&pending);
	say("pending %d\n", sigismember(&pending, SIGBUS));
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	T(pthread_sigmask(SIG_BLOCK, &set, &pending));
	say("before: %d %d\n", sigismember(&pending, SIGBUS), sigismember(&pending, SIGSEGV));
	say_mask("both");
	T(sigprocmask(SIG_UNBLOCK, &set, NULL));
	say_mask("one");
	sigemptyset(&set);
	T(sigprocmask(SIG_SETMASK, &set, NULL));
	say_mask("none");
	say("%d\n", sigprocmask(99, &set, NULL) < 0 ? errno : 0);
	if (!fork()) {
		sigfillset(&set);
		sigprocmask(SIG_SETMASK, &set, NULL);
		*(volatile int *)NULL = 1;
		_exit(1);
	}
	wait(&status);
	say("ended by %d\n", WTERMSIG(status));
}
