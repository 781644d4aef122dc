/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of options, and a function for each kind of value. See config.h for the grammar.
 */
#include "core/backend/option.h"

#include "core/backend/place.h"
#include "core/base/alloc.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- paths ---- */

int option_normalise(const char *path, char *out)
{
	size_t len = 0;

	if (*path != '/')
		return -EINVAL;
	while (*path) {
		size_t n;

		while (*path == '/')
			path++;
		n = strcspn(path, "/");
		if (!n || (n == 1 && *path == '.')) {
			path += n;
			continue;
		}
		if (n == 2 && !memcmp(path, "..", 2)) {
			while (len && out[--len] != '/')
				;
			path += n;
			continue;
		}
		if (len + 1 + n >= PATH_MAX)
			return -ENAMETOOLONG;
		out[len++] = '/';
		memcpy(out + len, path, n);
		len += n;
		path += n;
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return 0;
}

int option_path(char **slot, const char *what, const char *text, char *err, size_t err_len)
{
	char norm[PATH_MAX];
	int ret = option_normalise(text, norm);

	if (ret == -EINVAL)
		snprintf(err, err_len, "%s \"%s\" is not an absolute path", what, text);
	else if (ret)
		snprintf(err, err_len, "%s is longer than %d bytes", what, PATH_MAX);
	else if (!strcmp(norm, "/")) {
		snprintf(err, err_len, "%s may not be the root directory", what);
		ret = -EINVAL;
	} else if (!(*slot = mem_strdup(norm)))
		ret = -ENOMEM;
	return ret == -ENAMETOOLONG ? -EINVAL : ret;
}

/* ---- values ---- */

struct option {
	const char *name, *form; /* "small", "SIZE" */
	int (*take)(const struct option *o, struct mount_spec *m, const char *value, char *err,
		    size_t err_len);
	size_t at;         /* where the value goes, in struct mount_spec */
	const char *units; /* of a SIZE: "KMGT" or the beginning of it */
	uint64_t least;    /* the smallest number */
	uint64_t most;
};

static void *slot_of(const struct option *o, struct mount_spec *m) { return (char *)m + o->at; }

static int take_glob(char **globs, int *nr, const char *value, char *err, size_t err_len)
{
	if (!*value || *nr == CONFIG_GLOBS_MAX) {
		snprintf(err, err_len, *value ? "more than %d patterns" : "an empty pattern",
			 CONFIG_GLOBS_MAX);
		return -EINVAL;
	}
	globs[*nr] = mem_strdup(value);
	if (!globs[*nr])
		return -ENOMEM;
	(*nr)++;
	return 0;
}

static int take_match(const struct option *o, struct mount_spec *m, const char *value, char *err,
		      size_t err_len)
{
	(void)o;
	return take_glob(m->match, &m->nr_match, value, err, err_len);
}

static int take_exclude(const struct option *o, struct mount_spec *m, const char *value, char *err,
			size_t err_len)
{
	(void)o;
	return take_glob(m->exclude, &m->nr_exclude, value, err, err_len);
}

/* The number at the begin of *@text, of at most 9 digits. False: there is none. */
static bool take_digits(const char **text, uint64_t *n)
{
	const char *p = *text;

	for (*n = 0; *p >= '0' && *p <= '9' && p - *text < 9; p++)
		*n = *n * 10 + (uint64_t)(*p - '0');
	if (p == *text)
		return false;
	*text = p;
	return true;
}

static int take_number(const struct option *o, struct mount_spec *m, const char *value, char *err,
		       size_t err_len)
{
	const char *p = value;
	uint64_t n;

	if (take_digits(&p, &n) && !*p && n >= o->least && n <= o->most) {
		*(unsigned *)slot_of(o, m) = (unsigned)n;
		return 0;
	}
	snprintf(err, err_len, "\"%s=%s\" is no number from %u to %u", o->name, value, (unsigned)o->least,
		 (unsigned)o->most);
	return -EINVAL;
}

static int take_size(const struct option *o, struct mount_spec *m, const char *value, char *err,
		     size_t err_len)
{
	const char *p = value, *unit = NULL;
	uint64_t n;
	bool is = take_digits(&p, &n) && n >= o->least;

	if (is && *p) {
		unit = strchr(o->units, *p);
		is = unit && !p[1];
	}
	if (!is) {
		snprintf(err, err_len, "\"%s=%s\" is no size (a number, then nothing or one of %s)", o->name,
			 value, o->units);
		return -EINVAL;
	}
	*(uint64_t *)slot_of(o, m) = unit ? n << (10 * (unit - o->units + 1)) : n;
	return 0;
}

static int take_small(const struct option *o, struct mount_spec *m, const char *value, char *err,
		      size_t err_len)
{
	int ret = take_size(o, m, value, err, err_len);

	m->small_given |= !ret;
	return ret;
}

/* The form has all words that there are, with "|" between: the value becomes the number of one. */
static int take_word(const struct option *o, struct mount_spec *m, const char *value, char *err,
		     size_t err_len)
{
	unsigned *slot = slot_of(o, m), nr = 0;
	size_t len = strlen(value);

	for (const char *word = o->form;; word += strcspn(word, "|") + 1, nr++) {
		if (len == strcspn(word, "|") && !memcmp(word, value, len)) {
			*slot = nr;
			return 0;
		}
		if (!strchr(word, '|'))
			break;
	}
	snprintf(err, err_len, "\"%s=%s\" is none of %s", o->name, value, o->form);
	return -EINVAL;
}

/* The same; 0 is for an option that is not given. */
static int take_rule(const struct option *o, struct mount_spec *m, const char *value, char *err,
		     size_t err_len)
{
	int ret = take_word(o, m, value, err, err_len);

	*(unsigned *)slot_of(o, m) += !ret;
	return ret;
}

/* So many backends may be lost at a time. */
static int take_parity(const struct option *o, struct mount_spec *m, const char *value, char *err,
		       size_t err_len)
{
	if (*value >= '0' && *value <= '2' && !value[1]) {
		*(unsigned *)slot_of(o, m) = (unsigned)(*value - '0');
		return 0;
	}
	snprintf(err, err_len, "\"parity=%s\": parity= is 0, 1 or 2", value);
	return -EINVAL;
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Put the value of the variable at *@text, behind its "$", to @out. */
static int expand_one(const char **text, char *out, size_t *len, char *err, size_t err_len)
{
	char name[256];
	size_t n = 0;
	const char *value;

	while (n < sizeof(name) - 1 && is_of_name((*text)[n]))
		n++;
	memcpy(name, *text, n);
	name[n] = '\0';
	*text += n;
	if (!n) {
		snprintf(err, err_len, "near=: behind \"$\" there is no name of a variable, as in $TMPDIR, without braces");
		return -EINVAL;
	}
	value = secure_getenv(name);
	if (!value || !*value) {
		snprintf(err, err_len, "near=: the environment variable \"%s\" is not set", name);
		return -EINVAL;
	}
	n = strlen(value);
	if (*len + n >= PATH_MAX) {
		snprintf(err, err_len, "near= is longer than %d bytes", PATH_MAX);
		return -EINVAL;
	}
	memcpy(out + *len, value, n);
	*len += n;
	return 0;
}

int option_expand(const char *text, char *out, char *err, size_t err_len)
{
	size_t len = 0;
	int ret = 0;

	while (*text && !ret) {
		if (*text == '$') {
			text++;
			ret = expand_one(&text, out, &len, err, err_len);
		} else if (len + 1 < PATH_MAX) {
			out[len++] = *text++;
		} else {
			snprintf(err, err_len, "near= is longer than %d bytes", PATH_MAX);
			ret = -EINVAL;
		}
	}
	out[len] = '\0';
	return ret;
}

bool option_names_variables(const char *text)
{
	while ((text = strchr(text, '$')))
		if (!is_of_name(*++text))
			return false;
	return true;
}

bool option_is_place_name(const char *text)
{
	size_t len = strlen(text);

	for (const char *p = text; *p; p++)
		if (!is_of_name(*p) && (!strchr("-.", *p) || p == text))
			return false;
	return len && len <= CONFIG_NAME_MAX && strcmp(text, "auto");
}

int option_near(char **slot, const char *path, char *err, size_t err_len)
{
	int ret = option_path(slot, "near", path, err, err_len);

	if (ret || strlen(*slot) <= CONFIG_NEAR_MAX)
		return ret;
	snprintf(err, err_len, "near= is longer than %d bytes", CONFIG_NEAR_MAX);
	return -EINVAL;
}

static int take_near(const struct option *o, struct mount_spec *m, const char *value, char *err,
		     size_t err_len)
{
	char path[PATH_MAX];
	int ret = option_expand(value, path, err, err_len);

	(void)o;
	mem_free(m->near);
	mem_free(m->near_name);
	m->near = m->near_name = NULL;
	m->near_auto = !ret && !strcmp(path, "auto");
	if (ret || m->near_auto)
		return ret;
	if (!option_is_place_name(path))
		return option_near(&m->near, path, err, err_len);
	m->near_name = mem_strdup(path);
	return m->near_name ? 0 : -ENOMEM;
}

/* ---- all ---- */

#define AT(field) .at = offsetof(struct mount_spec, field)

static const struct option OPTIONS[] = {
	{ "mode", "log|flat", take_word, AT(mode) },
	{ "match", "GLOB", take_match, AT(match) },
	{ "exclude", "GLOB", take_exclude, AT(exclude) },
	{ "small", "SIZE", take_small, AT(small), .units = "KM" },
	{ "hostdirs", "NUMBER", take_number, AT(nr_hostdirs), .least = 1, .most = CONFIG_HOSTDIRS_MAX },
	{ "near", "DIR|NAME|auto", take_near, AT(near) },
	{ "near-max", "SIZE", take_size, AT(near_max), .units = "KMGT", .least = 1 },
	{ "drain", "helper|none|close", take_word, AT(drain) },
	{ "log-max", "SIZE", take_size, AT(log_max), .units = "KMGT", .least = 1 },
	{ "rate", "SIZE", take_size, AT(rate), .units = "KMGT", .least = 1 },
	{ "writers", "NUMBER", take_number, AT(writers), .least = 1, .most = 4096 },
	{ "exit-wait", "SECONDS", take_number, AT(exit_wait), .least = 0, .most = 86400 },
	{ "sync", "home|near", take_word, AT(sync) },
	{ "wait", "SECONDS", take_number, AT(wait), .least = 0, .most = 86400 },
	{ "mirror", "NUMBER", take_number, AT(mirror), .least = 2, .most = CONFIG_BACKENDS_MAX },
	{ "release", "near|home", take_word, AT(release) },
	{ "spread", "host|process|file", take_rule, AT(spread) },
	{ "parity", "0|1|2", take_parity, AT(parity) },
};

/* Those that a hint may be. */
static const char HINTS[] = "exclude small hostdirs";

static bool is_hint(const struct option *o)
{
	const char *at = strstr(HINTS, o->name);

	return at && (at == HINTS || at[-1] == ' ') && strchr(" ", at[strlen(o->name)]);
}

/* The option that @text gives a value, which is then at *@value; NULL: no such one. */
static const struct option *find(const char *text, const char **value)
{
	for (size_t i = 0; i < ARRAY_SIZE(OPTIONS); i++) {
		size_t len = strlen(OPTIONS[i].name);

		if (strncmp(text, OPTIONS[i].name, len) || text[len] != '=')
			continue;
		*value = text + len + 1;
		return &OPTIONS[i];
	}
	return NULL;
}

/* "NAME=FORM, NAME=FORM" of all, or of the hints, into @out. */
static void list_known(bool hints, char *out, size_t len)
{
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(OPTIONS) && at < len; i++)
		if (!hints || is_hint(&OPTIONS[i]))
			at += (size_t)snprintf(out + at, len - at, "%s%s=%s", at ? ", " : "", OPTIONS[i].name,
					       OPTIONS[i].form);
}

int option_take(struct mount_spec *m, const char *text, char *err, size_t err_len)
{
	const char *value;
	const struct option *o = find(text, &value);
	char known[512];

	if (o)
		return o->take(o, m, value, err, err_len);
	list_known(false, known, sizeof(known));
	snprintf(err, err_len, "unknown option \"%s\" (known: %s)", text, known);
	return -EINVAL;
}

/* Copies are named by lines of text (spare.h). */
static int check_mirror(const struct mount_spec *m, char *err, size_t err_len)
{
	if (m->mirror > (unsigned)m->nr_backends) {
		snprintf(err, err_len, "mirror=%u needs %u backends behind \"%s=\", separated by \",\"",
			 m->mirror, m->mirror, m->prefix);
		return -EINVAL;
	}
	for (int i = 1; i < (m->parity ? m->nr_backends : (int)m->mirror); i++) {
		if (strlen(m->backends[i]) <= CONFIG_NEAR_MAX && !strchr(m->backends[i], '\n'))
			continue;
		snprintf(err, err_len, "the name of a backend with copies is longer than %d bytes, or has a newline in it",
			 CONFIG_NEAR_MAX);
		return -EINVAL;
	}
	return 0;
}

static int check_parity(const struct mount_spec *m, char *err, size_t err_len)
{
	if (!m->parity)
		return 0;
	if (!m->spread || m->nr_backends < (int)m->parity + 2)
		snprintf(err, err_len,
			 "parity=%u is for %s backends or more with spread=: PREFIX=BACKEND,BACKEND,BACKEND,...{spread=...,parity=%u}",
			 m->parity, m->parity == 1 ? "three" : "four", m->parity);
	else if (m->drain == DRAIN_CLOSE)
		snprintf(err, err_len, "parity= does not go with drain=close: a group needs logs of several processes");
	else
		return 0;
	return -EINVAL;
}

int option_check(const struct mount_spec *m, char *err, size_t err_len)
{
	int ret = check_mirror(m, err, err_len);

	if (ret)
		return ret;
	if (m->sync == SYNC_NEAR && m->release == RELEASE_HOME)
		snprintf(err, err_len,
			 "sync=near does not go with release=home: a sync is a release, and copies to the backend then");
	else if (m->spread && m->nr_backends < 2)
		snprintf(err, err_len, "spread= is for several backends: PREFIX=BACKEND,BACKEND{spread=...}");
	else if (m->spread && (m->near || m->near_name || m->near_auto))
		snprintf(err, err_len, "spread= does not go with near=: what is near is moved to the first backend");
	else if (m->spread && m->mirror)
		snprintf(err, err_len, "spread= does not go with mirror=: a copy would lie in the backend of its log");
	else
		return check_parity(m, err, err_len);
	return -EINVAL;
}

int option_take_hint(struct mount_spec *m, int own, const char *text, char *err, size_t err_len)
{
	struct mount_spec none = { .mode = MOUNT_LOG };
	const char *value;
	const struct option *o = find(text, &value);
	char known[512];
	bool given;

	if (!o || !is_hint(o)) {
		list_known(true, known, sizeof(known));
		snprintf(err, err_len, "\"%s\" is no hint (known: %s)", text, known);
		return -EINVAL;
	}
	if (o->take == take_exclude)
		return own || m->nr_exclude == CONFIG_GLOBS_MAX ? 0 : o->take(o, m, value, err, err_len);
	given = o->take == take_small ? m->small_given : m->nr_hostdirs;
	return o->take(o, given ? &none : m, value, err, err_len);
}
