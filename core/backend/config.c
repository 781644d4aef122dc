/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser of the settings' text. See config.h for the grammar.
 */
#include "core/backend/config.h"

#include "core/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

int config_normalise(const char *path, char *out)
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

/*
 * Cut the next token off *@text, which ends before any character of @stops (not in braces when @braces) or at
 * the end. The token, unescaped, goes to @out (PATH_MAX); *@text is left at the stop. -ENAMETOOLONG.
 */
static int next_token(const char **text, const char *stops, char *out)
{
	size_t len = 0;
	const char *p = *text;

	while (*p && !strchr(stops, *p)) {
		if (*p == '\\' && p[1])
			p++;
		if (len + 1 >= PATH_MAX)
			return -ENAMETOOLONG;
		out[len++] = *p++;
	}
	out[len] = '\0';
	*text = p;
	return 0;
}

static int take_path(char **slot, const char *what, const char *text, char *err, size_t err_len)
{
	char norm[PATH_MAX];
	int ret = config_normalise(text, norm);

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

static int take_hostdirs(unsigned *nr, const char *value, char *err, size_t err_len)
{
	const char *p = value;

	for (*nr = 0; *p >= '0' && *p <= '9' && *nr <= CONFIG_HOSTDIRS_MAX; p++)
		*nr = *nr * 10 + (unsigned)(*p - '0');
	if (!*p && *nr >= 1 && *nr <= CONFIG_HOSTDIRS_MAX)
		return 0;
	snprintf(err, err_len, "\"hostdirs=%s\" is no number from 1 to %d", value, CONFIG_HOSTDIRS_MAX);
	return -EINVAL;
}

static int take_small(struct mount_spec *m, const char *value, char *err, size_t err_len)
{
	const char *p = value;
	uint64_t n = 0;

	while (*p >= '0' && *p <= '9' && p - value < 9)
		n = n * 10 + (uint64_t)(*p++ - '0');
	if (p > value && *p == 'K')
		n *= 1024, p++;
	else if (p > value && *p == 'M')
		n *= 1024 * 1024, p++;
	if (p == value || *p) {
		snprintf(err, err_len, "\"small=%s\" is no size (a number, then nothing, K or M)", value);
		return -EINVAL;
	}
	m->small = n;
	m->small_given = true;
	return 0;
}

static int take_near_max(struct mount_spec *m, const char *value, char *err, size_t err_len)
{
	static const char units[] = "KMGT";
	const char *p = value, *unit;
	uint64_t n = 0;

	while (*p >= '0' && *p <= '9' && p - value < 9)
		n = n * 10 + (uint64_t)(*p++ - '0');
	unit = *p ? strchr(units, *p) : NULL;
	if (p == value || !n || (*p && (!unit || p[1]))) {
		snprintf(err, err_len, "\"near-max=%s\" is no size (a number, then nothing, K, M, G or T)",
			 value);
		return -EINVAL;
	}
	m->near_max = unit ? n << (10 * (unit - units + 1)) : n;
	return 0;
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Put the value of the variable at *@text, behind its "$", to @out. */
static int expand(const char **text, char *out, size_t *len, char *err, size_t err_len)
{
	char name[256];
	size_t n = 0;
	const char *value;

	while (n < sizeof(name) - 1 && is_of_name((*text)[n]))
		n++;
	memcpy(name, *text, n);
	name[n] = '\0';
	*text += n;
	value = n ? secure_getenv(name) : NULL;
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

static int take_near(struct mount_spec *m, const char *value, char *err, size_t err_len)
{
	char path[PATH_MAX];
	size_t len = 0;
	int ret = 0;

	while (*value && !ret) {
		if (*value == '$') {
			value++;
			ret = expand(&value, path, &len, err, err_len);
		} else if (len + 1 < sizeof(path)) {
			path[len++] = *value++;
		} else {
			ret = -EINVAL;
		}
	}
	path[len] = '\0';
	mem_free(m->near);
	m->near = NULL;
	if (!ret)
		ret = take_path(&m->near, "near", path, err, err_len);
	if (!ret && strlen(m->near) > CONFIG_NEAR_MAX) {
		snprintf(err, err_len, "near= is longer than %d bytes", CONFIG_NEAR_MAX);
		ret = -EINVAL;
	}
	return ret;
}

static int take_option(struct mount_spec *m, const char *opt, char *err, size_t err_len)
{
	if (!strncmp(opt, "match=", 6))
		return take_glob(m->match, &m->nr_match, opt + 6, err, err_len);
	if (!strncmp(opt, "exclude=", 8))
		return take_glob(m->exclude, &m->nr_exclude, opt + 8, err, err_len);
	if (!strncmp(opt, "hostdirs=", 9))
		return take_hostdirs(&m->nr_hostdirs, opt + 9, err, err_len);
	if (!strncmp(opt, "small=", 6))
		return take_small(m, opt + 6, err, err_len);
	if (!strncmp(opt, "near=", 5))
		return take_near(m, opt + 5, err, err_len);
	if (!strncmp(opt, "near-max=", 9))
		return take_near_max(m, opt + 9, err, err_len);
	if (!strcmp(opt, "mode=log")) {
		m->mode = MOUNT_LOG;
		return 0;
	}
	if (!strcmp(opt, "mode=flat")) {
		m->mode = MOUNT_FLAT;
		return 0;
	}
	snprintf(
		err, err_len,
		"unknown option \"%s\" (known: mode=log, mode=flat, match=GLOB, exclude=GLOB, small=SIZE, hostdirs=NUMBER, near=DIR, near-max=SIZE)",
		opt);
	return -EINVAL;
}

static int parse_options(struct mount_spec *m, const char **text, char *err, size_t err_len)
{
	char token[PATH_MAX];

	do {
		int ret;

		(*text)++; /* the brace or the comma */
		ret = next_token(text, ",;}", token);
		if (!ret && **text == ';') { /* a pattern that nothing matches, and its user would not know */
			snprintf(err, err_len, "\";\" behind \"%.40s\": options are separated by \",\", and \"\\;\" is a semicolon of a name",
				 token);
			return -EINVAL;
		}
		if (!ret)
			ret = take_option(m, token, err, err_len);
		if (ret)
			return ret;
	} while (**text == ',');
	if (**text != '}') {
		snprintf(err, err_len, "a \"{\" without its \"}\"");
		return -EINVAL;
	}
	(*text)++;
	return 0;
}

static int parse_backends(struct mount_spec *m, const char **text, char *err, size_t err_len)
{
	char token[PATH_MAX];

	do {
		int ret;

		(*text)++; /* the equals sign or the comma */
		ret = next_token(text, ",:{}=", token);
		if (ret || m->nr_backends == CONFIG_BACKENDS_MAX) {
			snprintf(err, err_len, "a name too long, or more than %d backends",
				 CONFIG_BACKENDS_MAX);
			return -EINVAL;
		}
		if (!*token) {
			snprintf(err, err_len, "no backend after \"%s=\"", m->prefix);
			return -EINVAL;
		}
		ret = take_path(&m->backends[m->nr_backends], "backend", token, err, err_len);
		if (ret)
			return ret;
		m->nr_backends++;
	} while (**text == ',');
	return 0;
}

static int parse_mapping(struct mount_spec *m, const char **text, char *err, size_t err_len)
{
	char token[PATH_MAX];
	int ret = next_token(text, "=:{,}", token);

	if (ret) {
		snprintf(err, err_len, "a name longer than %d bytes", PATH_MAX);
		return -EINVAL;
	}
	if (!*token) {
		snprintf(err, err_len, "an empty mapping at \"%.40s\"", *text);
		return -EINVAL;
	}
	ret = take_path(&m->prefix, "prefix", token, err, err_len);
	if (ret)
		return ret;
	if (**text == '=') {
		ret = parse_backends(m, text, err, err_len);
	} else {
		m->in_place = true;
		m->backends[m->nr_backends++] = mem_strdup(m->prefix);
		ret = m->backends[0] ? 0 : -ENOMEM;
	}
	if (!ret && **text == '{')
		ret = parse_options(m, text, err, err_len);
	if (!ret && **text && **text != ':') {
		snprintf(err, err_len, "cannot make sense of \"%.40s\"", *text);
		ret = -EINVAL;
	}
	return ret;
}

int config_parse(struct config *c, const char *text, char *err, size_t err_len)
{
	snprintf(err, err_len, "out of memory");
	for (;;) {
		struct mount_spec *m = &c->specs[c->nr_specs];
		int ret;

		if (c->nr_specs == CONFIG_MOUNTS_MAX) {
			snprintf(err, err_len, "more than %d mappings", CONFIG_MOUNTS_MAX);
			return -EINVAL;
		}
		memset(m, 0, sizeof(*m));
		m->small = CONFIG_SMALL_DEFAULT;
		c->nr_specs++;
		ret = parse_mapping(m, &text, err, err_len);
		if (ret)
			return ret;
		for (int i = 0; i < c->nr_specs - 1; i++) {
			if (strcmp(c->specs[i].prefix, m->prefix))
				continue;
			snprintf(err, err_len, "prefix \"%s\" is mapped twice", m->prefix);
			return -EINVAL;
		}
		if (!*text)
			return 0;
		text++; /* the colon */
	}
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The MAP in the @n bytes at *@text: without blanks around it, and without a comment. Returns its length. */
static size_t trim_line(const char **text, size_t n)
{
	const char *line = *text;
	size_t end = 0;

	while (n && is_blank(*line)) {
		line++;
		n--;
	}
	*text = line;
	for (size_t i = 0; i < n && (line[i] != '#' || (i && !is_blank(line[i - 1]))); i++) {
		if (line[i] == '\\' && i + 1 < n) /* the next is a part of the name, even a blank */
			i++;
		else if (is_blank(line[i]))
			continue;
		end = i + 1;
	}
	return end;
}

int config_parse_file(struct config *c, const char *text, char *err, size_t err_len)
{
	while (*text) {
		size_t n = strcspn(text, "\n"), len;
		const char *map = text;
		char line[2 * PATH_MAX];
		int ret;

		len = trim_line(&map, n);
		if (len) {
			if (len >= sizeof(line)) {
				snprintf(err, err_len, "a line longer than %zu bytes", sizeof(line) - 1);
				return -EINVAL;
			}
			memcpy(line, map, len);
			line[len] = '\0';
			ret = config_parse(c, line, err, err_len);
			if (ret)
				return ret;
		}
		text += n + (text[n] == '\n');
	}
	return 0;
}

/* ---- hints ---- */

/* The mapping's own settings come first. @own: how many patterns it has of its own. */
static int take_hint(struct mount_spec *m, int own, const char *opt, char *err, size_t err_len)
{
	struct mount_spec none = { .mode = MOUNT_LOG };

	if (!strncmp(opt, "exclude=", 8))
		return own || m->nr_exclude == CONFIG_GLOBS_MAX ? 0 : take_option(m, opt, err, err_len);
	if (!strncmp(opt, "hostdirs=", 9))
		return m->nr_hostdirs ? take_option(&none, opt, err, err_len) :
					take_option(m, opt, err, err_len);
	if (!strncmp(opt, "small=", 6))
		return m->small_given ? take_option(&none, opt, err, err_len) :
					take_option(m, opt, err, err_len);
	snprintf(err, err_len, "\"%s\" is no hint (known: exclude=GLOB, hostdirs=NUMBER, small=SIZE)", opt);
	return -EINVAL;
}

int config_parse_hints(struct config *c, const char *text, char *err, size_t err_len)
{
	char line[PATH_MAX];
	int own[CONFIG_MOUNTS_MAX];

	for (int i = 0; i < c->nr_specs; i++)
		own[i] = c->specs[i].nr_match + c->specs[i].nr_exclude;
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *begin = text;
		size_t len = trim_line(&begin, n);

		text += n + (text[n] == '\n');
		if (!len || !strncmp(begin, "expect ", 7))
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)min_size(len, sizeof(line) - 1), begin);
		for (int i = 0; i < c->nr_specs; i++) {
			int ret = take_hint(&c->specs[i], own[i], line, err, err_len);

			if (ret)
				return ret;
		}
	}
	return 0;
}

/* ---- relative paths ---- */

struct text {
	char *out;
	size_t len, at; /* at == len: it did not fit */
};

static void put_char(struct text *t, char c)
{
	if (t->at < t->len)
		t->out[t->at++] = c;
}

static bool is_end(char c) { return !c || strchr(":=,{}", c); }

/* Step over "./" and "../" at *@text. Returns how much of @cwd is left. */
static size_t climb(const char **text, const char *cwd)
{
	size_t left = strlen(cwd);
	const char *p = *text;

	while (*p == '.') {
		size_t dots = p[1] == '.' ? 2 : 1;

		if (p[dots] != '/' && !is_end(p[dots]))
			break;
		while (dots == 2 && left && cwd[--left] != '/')
			;
		p += dots;
		p += strspn(p, "/");
	}
	*text = p;
	return left;
}

/* @cwd, for the relative path that begins at *@text, which is then at the rest of it. */
static void put_cwd(struct text *t, const char **text, const char *cwd)
{
	size_t left = climb(text, cwd);

	for (size_t i = 0; i < left; i++) {
		if (strchr(":,;={}#\\ \t", cwd[i]))
			put_char(t, '\\');
		put_char(t, cwd[i]);
	}
	if (!left || !is_end(**text))
		put_char(t, '/');
}

/* Whether the name at @text is a prefix: one that lacks its slash by mistake would not be noticed. */
static bool is_prefix(const char *text)
{
	while (!is_end(*text))
		text += *text == '\\' && text[1] ? 2 : 1;
	return *text == '=';
}

int config_absolute(const char *text, const char *cwd, char *out, size_t len)
{
	struct text t = { .out = out, .len = len };
	bool begins = true, braces = false;

	while (*text) {
		if (begins && !braces && *text != '/' && !is_end(*text) && !is_prefix(text)) {
			put_cwd(&t, &text, cwd);
			begins = false;
			continue;
		}
		begins = strchr(":=,", *text);
		braces = *text == '{' || (braces && *text != '}');
		if (*text == '\\' && text[1])
			put_char(&t, *text++);
		put_char(&t, *text++);
	}
	put_char(&t, '\0');
	return t.at < t.len || (t.len && !out[t.len - 1]) ? 0 : -ENAMETOOLONG;
}

void config_release(struct config *c)
{
	for (int i = 0; i < c->nr_specs; i++) {
		struct mount_spec *m = &c->specs[i];

		mem_free(m->prefix);
		mem_free(m->near);
		for (int k = 0; k < CONFIG_BACKENDS_MAX; k++)
			mem_free(m->backends[k]);
		for (int k = 0; k < CONFIG_GLOBS_MAX; k++) {
			mem_free(m->match[k]);
			mem_free(m->exclude[k]);
		}
	}
	memset(c, 0, sizeof(*c));
}
