// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory that is not there: calls that are given bad addresses, and the faults of a program itself, with a
 * handler and without.
 */
#include "signals.h"

#include <setjmp.h>

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
	char *map = mmap(NULL, 5 * NR * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     block[BLOCK];
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

/* ---- faults ---- */

static sigjmp_buf back;

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
