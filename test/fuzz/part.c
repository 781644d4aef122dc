/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of a stats file that another process has left: it is another user's, perhaps. Whatever is in it
 * becomes whole lines.
 */
#include "fuzz.h"

#include "core/observe/lines.h"

const char fuzz_name[] = "part";

/* Lines of JSON, as far as braces and quotes tell. */
static void must_be_lines(const struct text *t, uint32_t most)
{
	uint32_t nr = 0;
	int depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < t->len; i++) {
		unsigned char c = (unsigned char)t->p[i];

		must(c >= ' ' || (c == '\n' && !depth && !quoted), "a line without control characters");
		if (quoted && c == '\\') {
			i++;
			continue;
		}
		quoted ^= c == '"';
		if (!quoted)
			depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		must(depth >= 0, "braces");
		nr += c == '\n';
	}
	must(!depth && !quoted && nr <= most, "whole lines, one a file");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct part_head *head;
	struct text t = { 0 };
	uint8_t *p = copy_behind_head(data, size);
	int ret;

	if (!p)
		return 0;
	ret = part_decode(p, size - 1, &head);
	must_be(!ret || ret == -EBADMSG || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	if (!ret) {
		lines_add(&t, head, data[0] & 1);
		must(!t.failed, "memory");
		must_be_lines(&t, head->nr_slots);
	}
	mem_free(t.p);
	free(p);
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	struct part_head head = { .magic = PART_MAGIC,
				  .version = PART_VERSION,
				  .slot_len = PART_SLOT_LEN,
				  .host = "host",
				  .program = "a \"b\"\xff\n",
				  .rank = -1,
				  .ranks = 8 };
	static struct counters c;
	size_t len = 1 + PART_SLOT_LEN;

	memset(buf, 0, INPUT_MAX);
	buf[0] = (uint8_t)rnd(2);
	head.nr_slots = 1 + (uint32_t)rnd(4);
	memcpy(buf + 1, &head, sizeof(head));
	for (uint32_t i = 0; i < head.nr_slots; i++, len += PART_SLOT_LEN) {
		uint64_t now = 1ull << 60, off = rnd(1000), stride = rnd(3) * 100;

		memset(&c, 0, sizeof(c));
		c.files = 1;
		c.opens = 1;
		c.flags = rnd(8);
		snprintf(c.path, sizeof(c.path), "/plfs/%u", i);
		for (uint64_t k = rnd(20); k > 0; k--, off += stride)
			counters_call(&c, (enum way_kind)rnd(2), off, 100, now += rnd(1ull << rnd(40)),
				      rnd(1000), true);
		if (rnd(2)) /* a run that was not folded */
			c.ways[WAY_WRITE].next += 3 * (uint64_t)c.ways[WAY_WRITE].stride;
		memcpy(buf + len, &c, sizeof(c));
	}
	return len;
}
