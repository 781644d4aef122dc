/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A finding of plfs doctor, for people or as JSON.
 */
#include "doctor.h"

static void print_json(const struct doctor *d, enum health health, const char *about, const char *remedy,
		       const char *text)
{
	static const char *const names[] = { "ok", "note", "problem" };

	printf("{\"backend\": ");
	tool_print_json(d->backend);
	printf(", \"health\": \"%s\", \"about\": \"%s\", \"text\": ", names[health], about);
	tool_print_json(text);
	if (*remedy) {
		printf(", \"remedy\": ");
		tool_print_json(remedy);
	}
	puts("}");
}

void doctor_says(struct doctor *d, enum health health, const char *about, const char *remedy, const char *fmt,
		 ...)
{
	static const char *const names[] = { "ok", "note", "PROBLEM" };
	char text[PATH_MAX + 1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	d->nr_remarks += health == REMARK;
	d->nr_ills += health == ILL;
	progress_hide(&d->progress);
	if (opt.quiet && health == WELL)
		return;
	if (opt.json) {
		print_json(d, health, about, remedy, text);
		return;
	}
	tool_print("%-8s %-13s %s", names[health], about, text);
	if (*remedy)
		tool_print("%-8s %-13s to do: %s", "", "", remedy);
}
