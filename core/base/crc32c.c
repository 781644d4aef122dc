/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32C three ways, chosen once by what the processor has:
 *
 *  - portable: slicing-by-8 (Kounavis and Berry, "A Systematic Approach to Building High
 *    Performance Software-based CRC Generators", 2005);
 *  - the crc32 instruction on three streams at once, because it has a latency of 3 and a
 *    throughput of 1 (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32
 *    Instruction", Intel 2011);
 *  - carry-less multiplication of four 64-byte accumulators (Gopal et al., "Fast CRC Computation
 *    for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009, widened to VPCLMULQDQ).
 *
 * All numbers are bit-reflected, as CRC-32C is: the highest power sits in bit 0. POW(n) in a
 * comment is x^n mod P, 32 bits. Multiplying two reflected numbers without carries gives their
 * product times x, and a 32-bit number in a 64-bit lane counts as times x^32; hence the odd
 * exponents: to move a 64-bit lane n bits up one multiplies by POW(n - 33).
 */
#include "core/base/crc32c.h"

#include "core/base/bytes.h"

typedef uint32_t crc_fn(uint32_t crc, const unsigned char *p, size_t len);

/*
 * SLICE[s][b] is the checksum of byte b followed by s zero bytes. A checksum is linear in its
 * input, so eight constants a row, one for each bit of b, give the compiler the other 248.
 */
#define B(n, bit, k) ((n) & (1 << (bit)) ? (k) : 0u)
#define E(n, k0, k1, k2, k3, k4, k5, k6, k7) \
	(B(n, 0, k0) ^ B(n, 1, k1) ^ B(n, 2, k2) ^ B(n, 3, k3) ^ \
	 B(n, 4, k4) ^ B(n, 5, k5) ^ B(n, 6, k6) ^ B(n, 7, k7))
#define E4(n, ...) \
	E(n, __VA_ARGS__), E((n) + 1, __VA_ARGS__), E((n) + 2, __VA_ARGS__), E((n) + 3, __VA_ARGS__)
#define E16(n, ...) \
	E4(n, __VA_ARGS__), E4((n) + 4, __VA_ARGS__), E4((n) + 8, __VA_ARGS__), E4((n) + 12, __VA_ARGS__)
#define E64(n, ...) \
	E16(n, __VA_ARGS__), E16((n) + 16, __VA_ARGS__), E16((n) + 32, __VA_ARGS__), \
		E16((n) + 48, __VA_ARGS__)
#define ROW(...) \
	{ E64(0, __VA_ARGS__), E64(64, __VA_ARGS__), E64(128, __VA_ARGS__), E64(192, __VA_ARGS__) }

static const uint32_t SLICE[8][256] = {
	ROW(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf,
	    0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
	ROW(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8,
	    0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
	ROW(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5,
	    0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
	ROW(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6,
	    0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
	ROW(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91,
	    0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
	ROW(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f,
	    0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
	ROW(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53,
	    0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
	ROW(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da,
	    0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

uint32_t crc32c_portable(uint32_t crc, const void *buf, size_t len)
{
	const unsigned char *p = buf;

	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8) {
		uint32_t a = crc ^ get_le32(p);
		uint32_t b = get_le32(p + 4);

		crc = SLICE[7][a & 255] ^ SLICE[6][a >> 8 & 255] ^ SLICE[5][a >> 16 & 255] ^
		      SLICE[4][a >> 24] ^ SLICE[3][b & 255] ^ SLICE[2][b >> 8 & 255] ^
		      SLICE[1][b >> 16 & 255] ^ SLICE[0][b >> 24];
	}
	while (len--)
		crc = crc >> 8 ^ SLICE[0][(crc ^ *p++) & 255];
	return ~crc;
}

static uint32_t portable(uint32_t crc, const unsigned char *p, size_t len)
{
	return ~crc32c_portable(~crc, p, len);
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define WITH_CRC __attribute__((target("sse4.2,pclmul")))
#define WITH_FOLD __attribute__((target("sse4.2,pclmul,avx512f,avx512dq,avx512vl,vpclmulqdq")))

/* @crc moved past the bytes for which @pow is POW(8 * bytes - 33). */
WITH_CRC static inline uint64_t crc_shift(uint64_t crc, uint32_t pow)
{
	__m128i product =
		_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int)pow), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Three streams of @lane bytes each; @pow1 and @pow2 move a checksum past one lane and past two. */
WITH_CRC static inline uint64_t three_lanes(uint64_t c0, const unsigned char *p, size_t lane, uint32_t pow1,
					    uint32_t pow2)
{
	uint64_t c1 = 0, c2 = 0;

	for (const unsigned char *end = p + lane; p < end; p += 8) {
		c0 = _mm_crc32_u64(c0, get_le64(p));
		c1 = _mm_crc32_u64(c1, get_le64(p + lane));
		c2 = _mm_crc32_u64(c2, get_le64(p + 2 * lane));
	}
	return crc_shift(c0, pow2) ^ crc_shift(c1, pow1) ^ c2;
}

WITH_CRC static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t len)
{
	uint64_t c = crc;

	for (; len >= 3 * 4096; p += 3 * 4096, len -= 3 * 4096)
		c = three_lanes(c, p, 4096, 0x82f89c77, 0x54a86326);
	for (; len >= 3 * 256; p += 3 * 256, len -= 3 * 256)
		c = three_lanes(c, p, 256, 0xb9e02b86, 0xdd7e3b0c);
	for (; len >= 8; p += 8, len -= 8)
		c = _mm_crc32_u64(c, get_le64(p));
	while (len--)
		c = _mm_crc32_u8((uint32_t)c, *p++);
	return (uint32_t)c;
}

#if defined(__clang__) || __GNUC__ >= 8
#define CAN_FOLD 1 /* older ones have no VPCLMULQDQ */

#define FOLD_MIN 512 /* bytes, from which on folding is faster */

/* The two multipliers that move a 16-byte lane n bits up: POW(n + 31) for its low half, POW(n - 33). */
#define FOLD_2048 0xdcb17aa4, 0xb9e02b86
#define FOLD_1536 0xa87ab8a8, 0xab7aff2a
#define FOLD_1024 0x6992cea2, 0x0d3b6092
#define FOLD_512 0x740eef02, 0x9e4addf8
#define FOLD_384 0x1c291d04, 0xddc0152b
#define FOLD_256 0x3da6d0cb, 0xba4fc28e
#define FOLD_128 0xf20c0dfe, 0x493c7d27

#define HIGH_LOW(...) HIGH_LOW_(__VA_ARGS__)
#define HIGH_LOW_(low, high) high, low
#define LANES(...) _mm512_broadcast_i64x2(_mm_set_epi64x(HIGH_LOW(__VA_ARGS__)))

/*
 * How far ahead to ask for what comes, into the second cache: data that is cold in memory, a checkpoint's
 * usual state, then comes half as fast again (19 instead of 12.6 GB/s on the machine this was tuned on; into
 * the first cache, 2 KiB ahead: 15.8). Beyond the end it does no harm.
 */
#define PREFETCH_LEN 8192

static inline void prefetch_ahead(const unsigned char *p)
{
	for (int i = 0; i < 256; i += 64)
		__builtin_prefetch(p + PREFETCH_LEN + i, 0, 2);
}

/* Each 16-byte lane of @v moved up by the multipliers @k, and @add added. */
WITH_FOLD static inline __m512i fold(__m512i v, __m512i k, __m512i add)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, k, 0x00),
					 _mm512_clmulepi64_epi128(v, k, 0x11), add, 0x96);
}

/* 64 bytes, copied to @to on the way unless that is NULL. */
WITH_FOLD static inline __attribute__((always_inline)) __m512i take(unsigned char *to, const unsigned char *p,
								    int i)
{
	__m512i v = _mm512_loadu_si512(p + i);

	if (to)
		_mm512_storeu_si512(to + i, v);
	return v;
}

WITH_FOLD static inline __attribute__((always_inline)) uint32_t fold_all(uint32_t crc, unsigned char *to,
									 const unsigned char *p, size_t len)
{
	__m512i v0, v1, v2, v3, k;
	__m128i one;
	uint64_t c;

	/* _mm512_zextsi128_si512() came with gcc 10. */
	v0 = _mm512_inserti32x4(_mm512_setzero_si512(), _mm_cvtsi32_si128((int)crc), 0);
	v0 = _mm512_xor_si512(take(to, p, 0), v0);
	v1 = take(to, p, 64);
	v2 = take(to, p, 128);
	v3 = take(to, p, 192);
	k = LANES(FOLD_2048);
	for (p += 256, len -= 256; len >= 256; p += 256, len -= 256) {
		to = to ? to + 256 : NULL;
		prefetch_ahead(p);
		v0 = fold(v0, k, take(to, p, 0));
		v1 = fold(v1, k, take(to, p, 64));
		v2 = fold(v2, k, take(to, p, 128));
		v3 = fold(v3, k, take(to, p, 192));
	}
	if (to) {
		copy_to_pages(to + 256, p, len);
		p = to + 256;
	}
	/* Four accumulators to one, its four lanes to one, and that to 32 bits. */
	v3 = fold(v0, LANES(FOLD_1536), v3);
	v3 = fold(v1, LANES(FOLD_1024), v3);
	v3 = fold(v2, LANES(FOLD_512), v3);
	k = _mm512_set_epi64(0, 0, HIGH_LOW(FOLD_128), HIGH_LOW(FOLD_256), HIGH_LOW(FOLD_384));
	v0 = fold(v3, k, _mm512_setzero_si512());
	one = _mm512_extracti64x2_epi64(v3, 3);
	one = _mm_xor_si128(one, _mm512_castsi512_si128(v0));
	one = _mm_xor_si128(one, _mm512_extracti64x2_epi64(v0, 1));
	one = _mm_xor_si128(one, _mm512_extracti64x2_epi64(v0, 2));
	c = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(one));
	c = _mm_crc32_u64(c, (uint64_t)_mm_extract_epi64(one, 1));
	return by_instruction((uint32_t)c, p, len);
}

WITH_FOLD static uint32_t by_folding(uint32_t crc, const unsigned char *p, size_t len)
{
	return len < FOLD_MIN ? by_instruction(crc, p, len) : fold_all(crc, NULL, p, len);
}

WITH_FOLD static uint32_t by_folding_copy(uint32_t crc, unsigned char *to, const unsigned char *p, size_t len)
{
	return fold_all(crc, to, p, len);
}

/* Whether the kernel keeps the registers of AVX-512. cpuid says whether xgetbv can be asked. */
static bool keeps_wide(unsigned leaf1_c)
{
	unsigned low = 0, high;

	if (leaf1_c & bit_OSXSAVE)
		__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & 0xe6) == 0xe6;
}

#endif

/*
 * cpuid costs a virtual machine 10 us. So not __builtin_cpu_supports(), with which comes a constructor, in
 * every program, that asks a dozen times. All processors of 64 bits have leaf 1, and those whose kernel keeps
 * the wide registers have leaf 7.
 */
static crc_fn *best_for_this_machine(void)
{
	unsigned a, b, c, d;

	__cpuid(1, a, b, c, d);
	if (!(c & bit_SSE4_2) || !(c & bit_PCLMUL))
		return portable;
#ifdef CAN_FOLD
	const unsigned wide = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL;

	if (keeps_wide(c)) {
		__cpuid_count(7, 0, a, b, c, d);
		if ((b & wide) == wide && c & bit_VPCLMULQDQ)
			return by_folding;
	}
#endif
	return by_instruction;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

/* Not arm_acle.h's: compilers disagree on when those may be used in a file not built for them. */
static inline uint32_t crc_8(uint32_t crc, uint64_t v)
{
	__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(v));
	return crc;
}

static inline uint32_t crc_1(uint32_t crc, unsigned char v)
{
	__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(v));
	return crc;
}

/* @a times @b mod P, both reflected. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a & 0x80000000)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? 0x82f63b78 : 0);
	}
	return product;
}

static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t len)
{
	const size_t lane = 4096;

	for (; len >= 3 * lane; p += 3 * lane, len -= 3 * lane) {
		uint32_t c1 = 0, c2 = 0;

		for (size_t i = 0; i < lane; i += 8) {
			crc = crc_8(crc, get_le64(p + i));
			c1 = crc_8(c1, get_le64(p + lane + i));
			c2 = crc_8(c2, get_le64(p + 2 * lane + i));
		}
		/* POW(16 lane), POW(8 lane) */
		crc = multiply(crc, 0x28461564) ^ multiply(c1, 0x35d73a62) ^ c2;
	}
	for (; len >= 8; p += 8, len -= 8)
		crc = crc_8(crc, get_le64(p));
	while (len--)
		crc = crc_1(crc, *p++);
	return crc;
}

static crc_fn *best_for_this_machine(void)
{
	return getauxval(AT_HWCAP) & (1 << 7 /* HWCAP_CRC32 */) ? by_instruction : portable;
}

#else

static crc_fn *best_for_this_machine(void)
{
	return portable;
}

#endif

#define LEN_WORTH_ASKING 256 /* bytes: a program that only starts has none so long, and does not ask */

static crc_fn *best_form(size_t len)
{
	static crc_fn *best;
	crc_fn *fn = __atomic_load_n(&best, __ATOMIC_RELAXED);

	if (unlikely(!fn)) {
		if (len < LEN_WORTH_ASKING)
			return portable;
		fn = best_for_this_machine();
		__atomic_store_n(&best, fn, __ATOMIC_RELAXED);
	}
	return fn;
}

uint32_t crc32c(uint32_t crc, const void *buf, size_t len)
{
	return ~best_form(len)(~crc, buf, len);
}

uint32_t crc32c_copy(uint32_t crc, void *to, const void *buf, size_t len)
{
#ifdef CAN_FOLD
	size_t head = -(uintptr_t)to % 64;

	if (len >= FOLD_MIN + head && best_form(len) == by_folding) {
		memcpy(to, buf, head); /* from there on stores are aligned */
		crc = by_instruction(~crc, to, head);
		return ~by_folding_copy(crc, (unsigned char *)to + head, (const unsigned char *)buf + head,
					len - head);
	}
#endif
	copy_to_pages(to, buf, len);
	return crc32c(crc, to, len);
}
