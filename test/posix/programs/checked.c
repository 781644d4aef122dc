/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program built with a sanitizer does with files: all of stdio and the descriptor calls that the
 * sanitizers intercept, threads, a child. Built three times, see preloads.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>

static char path[4096];
static int shared;

static const char *at(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", getenv("P"), name);
	return path;
}

static void *work(void *arg)
{
	long i = (long)arg;
	char *block = malloc(1000);

	memset(block, 'a' + i, 1000);
	for (long n = 0; n < 50; n++) {
		if (pwrite(shared, block, 1000, (n * 8 + i) * 1000) != 1000)
			perror("pwrite");
	}
	free(block);
	return NULL;
}

int main(void)
{
	char *line = NULL, buf[100], *all;
	size_t cap = 0, sum = 0;
	pthread_t t[8];
	struct stat st;
	struct dirent *e;
	int n = 0, fd;
	FILE *f;
	DIR *d;

	f = fopen(at("text"), "w+");
	for (int i = 0; i < 1000; i++)
		fprintf(f, "line %d\n", i);
	rewind(f);
	while (getline(&line, &cap, f) > 0)
		sum += strlen(line);
	fseek(f, -9, SEEK_END);
	n = fread(buf, 1, sizeof buf, f);
	printf("%zu %.*s", sum, n, buf);
	fclose(f);
	free(line);

	shared = open(at("shared"), O_RDWR | O_CREAT, 0644);
	for (long i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	fstat(shared, &st);
	all = malloc(st.st_size);
	printf("%zd of %lld", pread(shared, all, st.st_size, 0), (long long)st.st_size);
	for (int i = 0; i < st.st_size; i++)
		n += all[i] != 'a' + i / 1000 % 8;
	printf(", %d\n", n);
	free(all);
	fflush(stdout);
	if (fork() == 0) {
		struct iovec v[] = {{"child ", 6}, {"wrote", 5}};

		if (writev(shared, v, 2) != 11)
			perror("writev");
		fflush(NULL);
		_exit(0);
	}
	wait(&n);
	printf("%d %lld\n", n, (long long)lseek(shared, 0, SEEK_CUR));
	close(shared);
	fd = open(at("none"), O_RDONLY);
	printf("%d %s\n", fd, strerror(errno));
	rename(at("text"), strcpy(buf, "/proc/none/x"));
	n = 0;
	d = opendir(at(""));
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	printf("%d names\n", n);
	f = freopen(at("out"), "w", stdout);
	printf("into the file\n");
	return system("echo a child") + (f == NULL);
}
