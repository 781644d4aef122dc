/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser of the settings' text. See config.h for the grammar; what one option says is option.c's.
 */
#include "core/backend/config.h"

#include "core/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

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
			ret = option_take(m, token, err, err_len);
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
		ret = option_path(&m->backends[m->nr_backends], "backend", token, err, err_len);
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
	ret = option_path(&m->prefix, "prefix", token, err, err_len);
	if (ret)
		return ret;
	if (**text == '=') {
		ret = parse_backends(m, text, err, err_len);
		m->in_place = !ret && !strcmp(m->prefix, m->backends[0]);
	} else {
		m->in_place = true;
		m->backends[m->nr_backends++] = mem_strdup(m->prefix);
		ret = m->backends[0] ? 0 : -ENOMEM;
	}
	if (!ret && **text == '{')
		ret = parse_options(m, text, err, err_len);
	if (!ret)
		ret = option_check(m, err, err_len);
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
			int ret = option_take_hint(&c->specs[i], own[i], line, err, err_len);

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
		mem_free(m->near_name);
		for (int k = 0; k < CONFIG_BACKENDS_MAX; k++)
			mem_free(m->backends[k]);
		for (int k = 0; k < CONFIG_GLOBS_MAX; k++) {
			mem_free(m->match[k]);
			mem_free(m->exclude[k]);
		}
	}
	memset(c, 0, sizeof(*c));
}
