/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of a series: ck.0040 and ck.0041, step12/out.3.h5 and step12/out.4.h5.
 */
#include "predict.h"

#include "tool.h"

#include <dirent.h>
#include <stdlib.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool predict_is_like(const char *a, const char *b)
{
	while (*a && *b) {
		if (is_digit(*a) && is_digit(*b)) {
			while (is_digit(*a))
				a++;
			while (is_digit(*b))
				b++;
		} else if (*a++ != *b++) {
			return false;
		}
	}
	return !*a && !*b;
}

void predict_series(const char *name, char *out)
{
	size_t len = 0;

	for (; *name && len < NAME_MAX; name++)
		if (!is_digit(*name))
			out[len++] = *name;
		else if (!len || out[len - 1] != '*')
			out[len++] = '*';
	out[len] = '\0';
}

void predict_by_hints(const char *path, uint64_t *bytes, double *seconds)
{
	const char *slash = strrchr(path, '/'), *hints = getenv("PLFS_HINTS");
	char line[512], series[NAME_MAX + 1], name[NAME_MAX + 1];
	FILE *in = hints && *hints ? fopen(hints, "re") : NULL;
	unsigned long long size;
	double took;

	if (!in)
		return;
	predict_series(slash ? slash + 1 : path, series);
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "expect %255s %llu %lf", name, &size, &took) == 3 && !strcmp(name, series)) {
			*bytes = size;
			*seconds = took;
		}
	fclose(in);
}

void predict_file(const char *path, uint64_t *bytes, double *seconds)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char dir[PATH_MAX];
	struct timespec newest = { 0 };
	struct dirent *e;
	struct stat st;
	DIR *d;

	*bytes = 0;
	*seconds = 0;
	predict_by_hints(path, bytes, seconds);
	if (*bytes)
		return;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	d = opendir(*dir ? dir : "/");
	if (!d)
		return;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, base) || !predict_is_like(e->d_name, base) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (st.st_mtim.tv_sec < newest.tv_sec ||
		    (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec < newest.tv_nsec))
			continue;
		if (!plfs_fix_stat(&st, NULL) || st.st_size <= 0)
			continue;
		newest = st.st_mtim;
		*bytes = (uint64_t)st.st_size;
	}
	closedir(d);
}
