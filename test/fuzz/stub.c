/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header of a stub: any bytes are a header, or an error, or nothing at all; and what is a header is what
 * was encoded.
 */
#include "fuzz.h"

#include "core/backend/stub.h"

const char fuzz_name[] = "stub";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t copy[STUB_READ_LEN], again[STUB_HEADER_LEN];
	struct stub stub, same;
	size_t len;
	int ret;

	if (!size)
		return 0;
	len = min_size(size - 1, sizeof(copy));
	memcpy(copy, data + 1, len);
	if (data[0] & FIX && len >= STUB_HEADER_LEN) {
		memcpy(copy, STUB_MAGIC, 8);
		fix_crc(copy, 12, STUB_HEADER_LEN);
	}
	if (data[0] & FIX && len == sizeof(copy))
		fix_crc(copy + STUB_CUT_OFF, 16, STUB_CUT_LEN);
	ret = stub_decode(&stub, data[0] & FIX ? copy : data + 1, len);
	must_be(ret == 0 || ret == -EIO || ret == -EPROTONOSUPPORT, ret, "an error that is documented");
	if (ret)
		return 0;
	must(len >= STUB_HEADER_LEN || !stub.has_container, "a header that is not whole says nothing");
	must(!stub.cut_ns || (len == sizeof(copy) && stub.has_container),
	     "no truncation is under way where there are no logs");
	stub_encode(&stub, again);
	must(!stub_decode(&same, again, sizeof(again)) && same.in_body == stub.in_body &&
		     same.moving == stub.moving && same.generation_ns == stub.generation_ns &&
		     same.created_ns == stub.created_ns && !memcmp(same.id, stub.id, STUB_ID_LEN),
	     "what was decoded can be encoded");
	return 0;
}

static size_t fuzz_valid(uint8_t *buf)
{
	struct stub stub = { .in_body = rnd(4) == 0,
			     .moving = rnd(4) == 0,
			     .generation_ns = rnd(3) ? 0 : rnd(1ull << 62),
			     .created_ns = rnd(1ull << 61) };

	for (int i = 0; i < STUB_ID_LEN; i++)
		stub.id[i] = (uint8_t)rnd(256);
	buf[0] = rnd(3) ? FIX : 0;
	stub_encode(&stub, buf + 1);
	memset(buf + 1 + STUB_HEADER_LEN, 0, STUB_READ_LEN - STUB_HEADER_LEN);
	put_le64(buf + 1 + STUB_CUT_OFF, rnd(2) ? rnd(1ull << 40) : 0);
	put_le64(buf + 1 + STUB_CUT_OFF + 8, rnd(1ull << 61));
	return 1 + (rnd(4) ? STUB_READ_LEN : STUB_HEADER_LEN);
}
