/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints what the reports have in bins: one object for a file, one for each process.
 */
#include "report_print.h"

void report_put_text(const char *name, const char *value)
{
	printf(", \"%s\": ", name);
	tool_print_json(value);
}

void report_put_number(const char *name, uint64_t value)
{
	printf(", \"%s\": %llu", name, (unsigned long long)value);
}

long long report_shown(uint32_t writer)
{
	return writer == REPORT_NOBODY ? -1 : (long long)writer;
}

/* A row of cells, the same writer again and again as [writer, how often]. */
struct row {
	uint32_t writer;
	unsigned nr;
	bool any;
};

static void put_run(struct row *r)
{
	if (r->nr)
		printf("%s[%lld, %u]", r->any ? ", " : "", report_shown(r->writer), r->nr);
	r->any |= r->nr > 0;
	r->nr = 0;
}

static void put_cell(struct row *r, uint32_t writer)
{
	if (r->nr && r->writer != writer)
		put_run(r);
	r->writer = writer;
	r->nr++;
}

static void put_numbers(const double *values, size_t nr)
{
	putchar('[');
	for (size_t i = 0; i < nr; i++)
		printf("%s%.0f", i ? ", " : "", values[i]);
	putchar(']');
}

/* The host that has the line @row; NULL: none. */
static const char *host_of_row(const struct report_logs *l, const struct report_bins *b, uint32_t row)
{
	for (size_t i = 0; i < l->nr_hosts && i < ARRAY_SIZE(b->host_row); i++)
		if (b->host_row[i] == row && row < REPORT_HOSTS)
			return l->hosts[i];
	return NULL;
}

static void put_times(const struct report_logs *l, const struct report_bins *b)
{
	const char *host, *comma = "";

	fputs(", \"bandwidth\": [", stdout);
	for (uint32_t row = 0; row <= REPORT_HOSTS; row++) {
		host = host_of_row(l, b, row);
		if (!host && (row < REPORT_HOSTS || l->nr_hosts <= REPORT_HOSTS))
			continue;
		printf("%s{\"host\": ", comma);
		if (host)
			tool_print_json(host);
		else
			fputs("null", stdout);
		fputs(", \"bytes\": ", stdout);
		put_numbers(b->hosts[row], REPORT_TIMES);
		putchar('}');
		comma = ", ";
	}
	putchar(']');
}

static void put_pictures(const struct report_bins *b)
{
	fputs(", \"offset_time\": [", stdout);
	for (size_t y = 0; y < REPORT_OFFSETS; y++) {
		struct row r = { 0 };

		fputs(y ? ", [" : "[", stdout);
		for (size_t x = 0; x < REPORT_TIMES; x++)
			put_cell(&r, b->cells[y][x].writer);
		put_run(&r);
		putchar(']');
	}
	fputs("], \"owners\": [", stdout);
	for (size_t i = 0, nr = 0; i < REPORT_SAMPLES; i += b->nr_steps)
		printf("%s%lld", nr++ ? ", " : "", report_shown(b->samples[i].writer));
	printf("], \"owner_rows\": %u, \"writers_and_offsets\": [",
	       (unsigned)(REPORT_STRIP_ROWS / b->nr_steps));
	for (size_t y = 0; y < b->nr_matrix_rows; y++) {
		fputs(y ? ", " : "", stdout);
		put_numbers(b->matrix[y], REPORT_MATRIX_COLUMNS);
	}
	putchar(']');
}

static void put_sizes(const struct report_bins *b)
{
	const char *comma = "";

	fputs(", \"sizes\": [", stdout);
	for (unsigned i = 0; i < 64; i++) {
		if (!b->by_log2[i])
			continue;
		printf("%s[%llu, %llu, %llu]", comma, 1ULL << i, (unsigned long long)b->by_log2[i],
		       (unsigned long long)b->bytes_by_log2[i]);
		comma = ", ";
	}
	fputs("], \"common_sizes\": [", stdout);
	comma = "";
	for (size_t i = 0; i < REPORT_COMMON; i++) {
		const struct report_length *l = &b->lengths[i];

		if (l->length) {
			printf("%s[%llu, %llu]", comma, (unsigned long long)l->length,
			       (unsigned long long)l->pieces);
			comma = ", ";
		}
	}
	fputs("]", stdout);
}

/* The name of the process's host, as in names of files. */
static void put_node(const struct report_writer *w)
{
	char node[REPORT_HOST_LEN * 4];

	snprintf(node, sizeof(node), "%.*s", (int)(strrchr(w->key, '.') - w->key), w->key);
	report_put_text("node", node);
}

/* What a trace has of a process, and no index. */
static void put_traced(const struct report_writer *w)
{
	if (w->rank >= 0)
		report_put_number("rank", (uint64_t)w->rank);
	report_put_text("program", w->program);
	printf(", \"seconds\": %.9f, \"slowest\": %.9f", (double)w->call_ns / 1e9,
	       (double)w->slowest_ns / 1e9);
	report_put_number("read_calls", w->read_calls);
	report_put_number("read_bytes", w->read_bytes);
	printf(", \"read_seconds\": %.9f", (double)w->read_ns / 1e9);
	report_put_number("errors", w->errors);
}

static void put_process(const struct report_logs *l, const struct report_writer *w, const char *type)
{
	printf("{\"type\": \"%s\", \"no\": %u", type, w->no);
	report_put_text("host", l->hosts[w->host]);
	put_node(w);
	report_put_number("pid", w->pid);
	if (w->pieces) {
		report_put_number("bytes", w->bytes);
		report_put_number("pieces", w->pieces);
		report_put_number("records", w->records);
		report_put_number("logs", w->logs);
		report_put_number("sequential", w->sequential);
		report_put_number("strided", w->strided);
		report_put_number("random", w->random);
		report_put_number("first_offset", w->first_off);
		report_put_number("end_offset", w->end_off);
		report_put_number("from_ns", w->first_ns);
		report_put_number("to_ns", w->last_ns);
	}
	if (*w->program)
		put_traced(w);
	printf(", \"open\": %s}\n", w->open ? "true" : "false");
}

void report_put_processes(const struct report_logs *l)
{
	struct report_writer *w, *next;

	for (size_t i = 0; i < l->nr_writers; i++)
		put_process(l, l->writers[i], "writer");
	HASH_ITER(hh, l->by_key, w, next)
		if (!w->pieces && w->read_calls)
			put_process(l, w, "reader");
}

void report_put_bins(const struct report_logs *l, const struct report_bins *b)
{
	report_put_number("hosts", l->nr_hosts);
	report_put_number("writers", l->nr_writers);
	report_put_number("records", l->nr_records);
	report_put_number("pieces", l->pieces);
	report_put_number("bytes", l->bytes);
	report_put_number("from_ns", l->from_ns);
	report_put_number("to_ns", l->to_ns);
	put_times(l, b);
	put_pictures(b);
	put_sizes(b);
}
