/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near.HOST as bytes. That files with logs elsewhere are read and written is test/unit/file/near.c's.
 */
#include "core/backend/place.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

#include <criterion/criterion.h>

TestSuite(place);

static struct place p = { .created_ns = 77, .host = "n1-00112233", .path = "/near/plfs.5/0123456789abcdef" };
static uint8_t buf[PLACE_LEN];

static void encoded(void)
{
	memset(p.id, 3, sizeof(p.id));
	memset(p.token, 4, sizeof(p.token));
	place_encode(&p, buf);
}

static void seal(void)
{
	put_le32(buf + 12, 0);
	put_le32(buf + 12, crc32c(0, buf, sizeof(buf)));
}

Test(place, what_was_encoded_is_decoded)
{
	struct place q;

	encoded();
	cr_assert_eq(place_decode(&q, buf), 0);
	cr_assert_arr_eq(q.id, p.id, sizeof(p.id));
	cr_assert_arr_eq(q.token, p.token, sizeof(p.token));
	cr_assert_eq(q.created_ns, 77);
	cr_assert_str_eq(q.host, p.host);
	cr_assert_str_eq(q.path, p.path);
}

Test(place, each_flipped_bit_is_seen)
{
	struct place q;

	encoded();
	for (size_t i = 0; i < sizeof(buf) * 8; i++) {
		buf[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_assert_neq(place_decode(&q, buf), 0, "bit %zu", i);
		buf[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	cr_assert_eq(place_decode(&q, buf), 0);
}

Test(place, names_without_an_end_are_damage)
{
	struct place q;

	encoded();
	memset(buf + 64, 'h', 64);
	seal();
	cr_assert_eq(place_decode(&q, buf), -EIO);
	encoded();
	memset(buf + 128, '/', PLACE_PATH_LEN);
	seal();
	cr_assert_eq(place_decode(&q, buf), -EIO);
}

Test(place, later_versions_and_unknown_features_are_refused)
{
	struct place q;

	encoded();
	put_le32(buf + 8, PLACE_VERSION + 1);
	seal();
	cr_assert_eq(place_decode(&q, buf), -EPROTONOSUPPORT);
	encoded();
	put_le32(buf + 60, 1u << 31);
	seal();
	cr_assert_eq(place_decode(&q, buf), -EPROTONOSUPPORT);
	encoded();
	put_le32(buf + 56, 1);
	seal();
	cr_assert_eq(place_decode(&q, buf), 0);
}

Test(place, the_host_is_named_without_its_digits)
{
	char host[64];

	place_host(&p, host, sizeof(host));
	cr_assert_str_eq(host, "n1");
}
