/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of a backend's places, read line by line.
 */
#include "core/backend/place_names.h"

#include "core/base/alloc.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <unistd.h>

#define LIST_MAX 65536
#define KIND "posix"

/* Who could change it could send the logs of others elsewhere. */
static int check_owner(const struct place_names *pn)
{
	struct stat st;
	int ret = pn->store->ops->stat(pn->store, PLACE_NAMES_PATH, &st);

	if (ret)
		return ret;
	if (!S_ISREG(st.st_mode) || st.st_mode & (S_IWGRP | S_IWOTH) ||
	    (st.st_uid && st.st_uid != pn->owner && st.st_uid != geteuid()))
		return -EPERM;
	return 0;
}

int place_names_read(const struct place_names *pn, char **text)
{
	size_t len;
	void *buf;
	int ret = check_owner(pn);

	if (!ret)
		ret = store_read_file(pn->store, PLACE_NAMES_PATH, LIST_MAX, &buf, &len);
	if (ret)
		return ret;
	*text = buf;
	(*text)[len] = '\0';
	return 0;
}

/* Step over the next word at *@text, and the blanks behind it. Returns its length. */
static size_t next_word(const char **text)
{
	size_t len = strcspn(*text, " \t\n");

	*text += len;
	*text += strspn(*text, " \t");
	return len;
}

bool place_names_line(const char *line, struct place_line *pl)
{
	const char *word = line;
	size_t len = next_word(&line);

	if (len != sizeof("place") - 1 || memcmp(word, "place", len))
		return false;
	word = line;
	len = next_word(&line);
	if (len > CONFIG_NAME_MAX)
		return false;
	memcpy(pl->name, word, len);
	pl->name[len] = '\0';
	word = line;
	len = next_word(&line);
	pl->is_posix = len == sizeof(KIND) - 1 && !memcmp(word, KIND, len);
	pl->dir = line;
	pl->dir_len = strcspn(line, "\n");
	return option_is_place_name(pl->name);
}

int place_names_each(const struct place_names *pn, int (*fn)(void *arg, const char *name, const char *dir),
		     void *arg)
{
	struct place_line pl;
	char *text;
	int ret = place_names_read(pn, &text);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	for (char *line = text, *end; *line && !ret; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (place_names_line(line, &pl) && pl.is_posix)
			ret = fn(arg, pl.name, pl.dir);
	}
	mem_free(text);
	return ret;
}

struct finding {
	const char *name;
	char **dir, *err;
	size_t err_len;
};

/* 1: found; -errno: one sentence in f->err. */
static int find(void *arg, const char *name, const char *dir)
{
	const struct finding *f = arg;
	char path[PATH_MAX];
	int ret;

	if (strcmp(name, f->name))
		return 0;
	ret = option_expand(dir, path, f->err, f->err_len);
	if (!ret)
		ret = option_near(f->dir, path, f->err, f->err_len);
	return ret ? ret : 1;
}

int place_names_find(const struct place_names *pn, const char *name, char **dir, char *err, size_t err_len)
{
	struct finding f = { name, dir, err, err_len };
	int ret;

	*err = '\0';
	ret = place_names_each(pn, find, &f);
	if (ret > 0)
		return 0;
	if (!ret)
		snprintf(err, err_len, "near=%s: no place of %s has that name (plfs places --add %s=DIR %s)",
			 name, pn->home, name, pn->home);
	else if (ret == -EPERM)
		snprintf(err, err_len,
			 "near=%s: %s/.plfs/places does not count: others may write it (chmod 644 mends that), or it is another user's",
			 name, pn->home);
	else if (!*err)
		snprintf(err, err_len, "near=%s: %s/.plfs/places: %s", name, pn->home, strerror(-ret));
	return ret ? ret : -ENOENT;
}
