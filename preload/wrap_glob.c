/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * glob and wordexp. The C library's glob() can be told by which functions to look at directories: ours. Its
 * wordexp() cannot, so it gets the text with a mark in place of each pattern character that counts, does all
 * but the patterns, and the marked words are given to glob() here.
 */
#include "fdtable.h"
#include "proc.h"

#include <glob.h>
#include <stdlib.h>
#include <wordexp.h>

/* ---- glob ---- */

static void *alt_opendir(const char *path) { return opendir(path); }
static struct dirent *alt_readdir(void *dir) { return readdir(dir); }
static void alt_closedir(void *dir) { closedir(dir); }

static int glob_ours(const char *pattern, int flags, int (*errfunc)(const char *path, int err), glob_t *out)
{
	glob_t before = *out;
	int r;

	out->gl_opendir = alt_opendir;
	out->gl_readdir = alt_readdir;
	out->gl_closedir = alt_closedir;
	out->gl_stat = stat;
	out->gl_lstat = lstat;
	r = sys.glob(pattern, flags | GLOB_ALTDIRFUNC, errfunc, out);
	out->gl_opendir = before.gl_opendir;
	out->gl_readdir = before.gl_readdir;
	out->gl_closedir = before.gl_closedir;
	out->gl_stat = before.gl_stat;
	out->gl_lstat = before.gl_lstat;
	if (out->gl_flags != before.gl_flags) /* there was no error before it was set */
		out->gl_flags &= ~GLOB_ALTDIRFUNC;
	return r;
}

EXPORT int glob(const char *pattern, int flags, int (*errfunc)(const char *path, int err), glob_t *out)
{
	if (!shim_on() || !pattern || !out || (flags & GLOB_ALTDIRFUNC))
		return sys.glob(pattern, flags, errfunc, out);
	return glob_ours(pattern, flags, errfunc, out);
}
ALIAS64(glob64, glob);

/* ---- wordexp ---- */

static const char PATTERN_CHARS[] = "*?[";
static const char MARKS[] = "\001\002\003"; /* in the same order */

/* The end of what begins with "$" at @p: "${...}", "$(...)" or "$[...]", or of the "`...`" there. */
static const char *skip_expansion(const char *p)
{
	const char open = *p == '`' ? '`' : p[1];
	const char close = open == '{' ? '}' : open == '(' ? ')' : open == '[' ? ']' : open == '`' ? '`' : 0;
	int depth = 1;

	if (!close)
		return p + 1;
	for (p += open == '`' ? 1 : 2; *p && depth; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '\'' && open != '`' && strchr(p + 1, '\''))
			p = strchr(p + 1, '\'');
		else if (*p == close)
			depth--;
		else if (*p == open)
			depth++;
	}
	return p;
}

/* Put marks over the pattern characters of @text that are not quoted. How many. */
static int mark_patterns(char *text)
{
	const char *found;
	char quote = 0;
	char *p = text;
	int nr = 0;

	while (*p) {
		if (*p == '\\' && quote != '\'' && p[1]) {
			p += 2;
		} else if ((*p == '$' || *p == '`') && quote != '\'') {
			p = text + (skip_expansion(p) - text);
		} else {
			if (*p == quote)
				quote = 0;
			else if (!quote && (*p == '\'' || *p == '"'))
				quote = *p;
			else if (!quote && (found = strchr(PATTERN_CHARS, *p)) && ++nr)
				*p = MARKS[found - PATTERN_CHARS];
			p++;
		}
	}
	return nr;
}

/* Back again, in one word. Whether it had any. */
static bool unmark(char *word)
{
	const char *found;
	bool any = false;

	for (; (word = strpbrk(word, MARKS)); word++, any = true) {
		found = strchr(MARKS, *word);
		*word = PATTERN_CHARS[found - MARKS];
	}
	return any;
}

/* Add @word, which is taken over, to the end of @we. 0 or WRDE_NOSPACE. */
static int add_word(wordexp_t *we, char *word)
{
	const size_t at = we->we_offs + we->we_wordc;
	char **more = word ? realloc(we->we_wordv, (at + 2) * sizeof(*more)) : NULL;

	if (!more) {
		free(word);
		return WRDE_NOSPACE;
	}
	if (!we->we_wordv)
		memset(more, 0, we->we_offs * sizeof(*more));
	more[at] = word;
	more[at + 1] = NULL;
	we->we_wordv = more;
	we->we_wordc++;
	return 0;
}

/* Add what @word, a marked one or not, stands for. */
static int add_expanded(wordexp_t *we, char *word)
{
	glob_t found = {0};
	size_t i;
	int r = 0;

	if (!unmark(word))
		return add_word(we, strdup(word));
	if (glob_ours(word, GLOB_NOCHECK, NULL, &found))
		return WRDE_NOSPACE; /* the only error that is left */
	for (i = 0; i < found.gl_pathc && !r; i++)
		r = add_word(we, strdup(found.gl_pathv[i]));
	globfree(&found);
	return r;
}

/* All words of @from behind those of @we, which may have none; with room before them for @offs. */
static int add_all(wordexp_t *we, const wordexp_t *from, size_t offs)
{
	size_t i;
	int r = 0;

	we->we_offs = offs;
	if (!we->we_wordv) {
		we->we_wordv = calloc(offs + 1, sizeof(*we->we_wordv));
		if (!we->we_wordv)
			return WRDE_NOSPACE;
	}
	for (i = 0; i < from->we_wordc && !r; i++)
		r = add_expanded(we, from->we_wordv[i]);
	return r;
}

static int wordexp_ours(char *marked, wordexp_t *we, int flags)
{
	const size_t offs = flags & WRDE_DOOFFS ? we->we_offs : 0;
	wordexp_t raw = {0};
	int r = sys.wordexp(marked, &raw, flags & ~(WRDE_APPEND | WRDE_DOOFFS | WRDE_REUSE));

	if (!r) {
		if (flags & WRDE_REUSE)
			wordfree(we);
		if ((flags & WRDE_REUSE) || !(flags & WRDE_APPEND)) {
			we->we_wordc = 0;
			we->we_wordv = NULL;
		}
		r = add_all(we, &raw, offs);
	}
	if (!r || r == WRDE_NOSPACE)
		wordfree(&raw);
	return r;
}

EXPORT int wordexp(const char *words, wordexp_t *we, int flags)
{
	bool command = shim_on() && words && strpbrk(words, "$`");
	char *marked = shim_active && words ? strdup(words) : NULL;
	int r;

	if (command)
		proc_share_with_child();
	if (marked && !strpbrk(words, MARKS) && mark_patterns(marked))
		r = wordexp_ours(marked, we, flags);
	else
		r = sys.wordexp(words, we, flags);
	if (command)
		fd_refresh_all();
	free(marked);
	return r;
}
