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

/* Cut the next word off *@text, with the blanks behind it. */
static char *next_word(char **text)
{
	char *word = *text + strspn(*text, " \t");

	*text = word + strcspn(word, " \t");
	if (**text)
		*(*text)++ = '\0';
	*text += strspn(*text, " \t");
	return word;
}

static int take_line(char *line, int (*fn)(void *arg, const char *name, const char *dir), void *arg)
{
	char *name;

	if (strcmp(next_word(&line), "place"))
		return 0;
	name = next_word(&line);
	return strcmp(next_word(&line), KIND) || !option_is_place_name(name) ? 0 : fn(arg, name, line);
}

int place_names_each(const struct place_names *pn, int (*fn)(void *arg, const char *name, const char *dir),
		     void *arg)
{
	char *text, *next;
	size_t len;
	void *buf;
	int ret = check_owner(pn);

	if (!ret)
		ret = store_read_file(pn->store, PLACE_NAMES_PATH, LIST_MAX, &buf, &len);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	text = buf;
	text[len] = '\0';
	for (; text && !ret; text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		ret = take_line(text, fn, arg);
	}
	mem_free(buf);
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
			 "near=%s: %s/.plfs/places belongs to another user, or others than its owner may write it",
			 name, pn->home);
	else if (!*err)
		snprintf(err, err_len, "near=%s: %s/.plfs/places: %s", name, pn->home, strerror(-ret));
	return ret ? ret : -ENOENT;
}
