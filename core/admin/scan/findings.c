/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of findings.
 */
#include "core/admin/scan/findings.h"

#include <stdio.h>

#define TEXT_MAX 1024

static struct finding *add(struct findings *f, enum plfs_severity severity, const char *code,
			   const char *path, const char *text)
{
	size_t path_len = strlen(path) + 1, text_len = strlen(text) + 1;
	struct finding *new = mem_zalloc(sizeof(*new) + path_len + text_len);

	if (!new) {
		f->ret = -ENOMEM;
		return NULL;
	}
	new->severity = severity;
	new->code = code;
	new->path = memcpy(new + 1, path, path_len);
	new->text = memcpy(new->path + path_len, text, text_len);
	*(f->end ? f->end : &f->first) = new;
	f->end = &new->next;
	f->nr++;
	f->nr_damaged += severity == PLFS_DAMAGED;
	return new;
}

/* One more than the list takes. */
static struct finding *add_rest(struct findings *f, enum plfs_severity severity)
{
	static const char room[] = "and 4294967295 more findings";

	if (!f->rest) {
		f->rest = add(f, PLFS_NOTED, "more", "", room);
		if (!f->rest)
			return NULL;
	}
	if (severity == PLFS_DAMAGED && f->rest->severity != PLFS_DAMAGED) {
		f->rest->severity = PLFS_DAMAGED;
		f->nr_damaged++;
	}
	snprintf(f->rest->text, sizeof(room), "and %u more findings", ++f->nr_rest);
	return f->rest;
}

struct finding *findings_add(struct findings *f, enum plfs_severity severity, const char *code,
			     const char *path, uint64_t at, const char *fmt, ...)
{
	char text[TEXT_MAX];
	struct finding *new;
	va_list args;

	if (f->nr >= FINDINGS_MAX)
		return add_rest(f, severity);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	new = add(f, severity, code, path, text);
	if (new)
		new->at = at;
	return new;
}

void findings_release(struct findings *f)
{
	for (struct finding *at = f->first, *next; at; at = next) {
		next = at->next;
		mem_free(at);
	}
	memset(f, 0, sizeof(*f));
}

bool findings_have(const struct findings *f, const struct finding *one)
{
	for (const struct finding *at = f->first; at; at = at->next)
		if (at->severity == one->severity && at->at == one->at && !strcmp(at->code, one->code) &&
		    !strcmp(at->path, one->path))
			return true;
	return false;
}

bool findings_confirm(struct findings *f, const struct findings *before)
{
	bool any = false;

	for (struct finding *at = f->first; at; at = at->next) {
		at->doubtful = at->severity == PLFS_DAMAGED && !findings_have(before, at);
		f->nr_damaged -= at->doubtful;
		any |= at->doubtful;
	}
	return any;
}
