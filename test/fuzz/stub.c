/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header of a stub: any bytes are a header, or an error, or nothing at all; and what is a header is what was encoded.
 */
#include "fuzz.h"

#include "../../core/stub.h"

const char fuzz_name[] = "stub";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t copy[STUB_HEADER_LEN], again[STUB_HEADER_LEN];
	struct stub stub, same;
	size_t len;
	int ret;

	if (!size)
		return 0;
	len = min_size(size - 1, sizeof(copy));
	memcpy(copy, data + 1, len);
	if (data[0] & FIX && len == sizeof(copy)) {
		memcpy(copy, STUB_MAGIC, 8);
		fix_crc(copy, 12, sizeof(copy));
	}
	ret = stub_decode(&stub, data[0] & FIX ? copy : data + 1, len);
	must_be(ret == 0 || ret == -EIO || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	if (ret)
		return 0;
	must(len == sizeof(copy) || !stub.has_container, "a header that is not whole says nothing");
	stub_encode(&stub, again);
	must(!stub_decode(&same, again, sizeof(again)) && same.in_body == stub.in_body && same.moving == stub.moving &&
		     same.generation_ns == stub.generation_ns && same.created_ns == stub.created_ns && !memcmp(same.id, stub.id, STUB_ID_LEN),
	     "what was decoded can be encoded");
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	struct stub stub = { .in_body = rnd(4) == 0, .moving = rnd(4) == 0, .generation_ns = rnd(3) ? 0 : rnd(1ull << 62),
			     .created_ns = rnd(1ull << 61) };

	for (int i = 0; i < STUB_ID_LEN; i++)
		stub.id[i] = (uint8_t)rnd(256);
	buf[0] = rnd(3) ? FIX : 0;
	stub_encode(&stub, buf + 1);
	return 1 + STUB_HEADER_LEN;
}
