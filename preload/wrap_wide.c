/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wide characters on the streams of stream.c. The C library has none on cookie streams, so they are made of
 * the bytes that such a stream reads and writes, in the locale of the moment. Other streams are left to the C
 * library.
 */
#include "stream.h"

#include <stdlib.h>
#include <wchar.h>

/* ---- single characters; with the stream locked ---- */

static wint_t get_wide(FILE *fp)
{
	mbstate_t state = {0};
	wchar_t wc = 0;
	size_t len = 0, r;
	char byte;
	int c;

	do {
		c = getc_unlocked(fp);
		if (c == EOF && !len)
			return WEOF;
		byte = (char)c;
		r = c == EOF ? (size_t)-1 : mbrtowc(&wc, &byte, 1, &state);
		len++;
	} while (r == (size_t)-2);
	if (r != (size_t)-1)
		return (wint_t)wc;
	errno = EILSEQ;
	fp->_flags |= _IO_ERR_SEEN;
	return WEOF;
}

static wint_t put_wide(wchar_t wc, FILE *fp)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t len = wcrtomb(bytes, wc, &state);

	if (len == (size_t)-1)
		fp->_flags |= _IO_ERR_SEEN;
	else if (fwrite_unlocked(bytes, 1, len, fp) == len)
		return (wint_t)wc;
	return WEOF;
}

/* Begin and end of a call on a stream of ours. */
static void begin(FILE *fp)
{
	flockfile(fp);
	stream_set_wide(fp);
}

static void end(FILE *fp) { funlockfile(fp); }

/* ---- reading ---- */

EXPORT wint_t fgetwc(FILE *fp)
{
	wint_t wc;

	if (!stream_is_ours(fp))
		return sys.fgetwc(fp);
	begin(fp);
	wc = get_wide(fp);
	end(fp);
	return wc;
}
ALIAS(getwc, fgetwc);
ALIAS(fgetwc_unlocked, fgetwc); /* locks can be taken again by who has them */
ALIAS(getwc_unlocked, fgetwc);

EXPORT wint_t getwchar(void) { return fgetwc(stdin); }
ALIAS(getwchar_unlocked, getwchar);

EXPORT wchar_t *fgetws(wchar_t *s, int n, FILE *fp)
{
	wint_t wc = 0;
	int len = 0;

	if (!stream_is_ours(fp))
		return sys.fgetws(s, n, fp);
	if (n <= 0)
		return NULL;
	begin(fp);
	while (len < n - 1 && wc != L'\n') {
		wc = get_wide(fp);
		if (wc == WEOF)
			break;
		s[len++] = (wchar_t)wc;
	}
	end(fp);
	s[len] = L'\0';
	return (!len && n > 1) || ferror(fp) ? NULL : s;
}
ALIAS(fgetws_unlocked, fgetws);

EXPORT wchar_t *__fgetws_chk(wchar_t *s, size_t room, int n, FILE *fp)
{
	if (n > 0 && (size_t)n > room)
		__chk_fail();
	return fgetws(s, n, fp);
}
ALIAS(__fgetws_unlocked_chk, __fgetws_chk);

EXPORT wint_t ungetwc(wint_t wc, FILE *fp)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t len;

	if (!stream_is_ours(fp))
		return sys.ungetwc(wc, fp);
	len = wc == WEOF ? (size_t)-1 : wcrtomb(bytes, (wchar_t)wc, &state);
	if (len == (size_t)-1)
		return WEOF;
	begin(fp);
	while (len && ungetc((unsigned char)bytes[len - 1], fp) != EOF)
		len--;
	end(fp);
	return len ? WEOF : wc;
}

/* ---- writing ---- */

EXPORT wint_t fputwc(wchar_t wc, FILE *fp)
{
	wint_t r;

	if (!stream_is_ours(fp))
		return sys.fputwc(wc, fp);
	begin(fp);
	r = put_wide(wc, fp);
	end(fp);
	return r;
}
ALIAS(putwc, fputwc);
ALIAS(fputwc_unlocked, fputwc);
ALIAS(putwc_unlocked, fputwc);

EXPORT wint_t putwchar(wchar_t wc) { return fputwc(wc, stdout); }
ALIAS(putwchar_unlocked, putwchar);

static int put_all(const wchar_t *s, size_t len, FILE *fp)
{
	wint_t r = 0;

	begin(fp);
	while (len-- && r != WEOF)
		r = put_wide(*s++, fp);
	end(fp);
	return r == WEOF ? -1 : 1;
}

EXPORT int fputws(const wchar_t *s, FILE *fp)
{
	return stream_is_ours(fp) ? put_all(s, wcslen(s), fp) : sys.fputws(s, fp);
}
ALIAS(fputws_unlocked, fputws);

/* The C library's own formatting into memory, and from there to @fp. */
static int print(FILE *fp, const wchar_t *format, va_list ap)
{
	wchar_t *text = NULL;
	size_t len = 0;
	FILE *memory = open_wmemstream(&text, &len);
	int n = memory ? sys.vfwprintf(memory, format, ap) : -1;

	if (memory && sys.fclose(memory))
		n = -1;
	if (n >= 0 && put_all(text, len, fp) < 0)
		n = -1;
	free(text);
	return n;
}

EXPORT int vfwprintf(FILE *fp, const wchar_t *format, va_list ap)
{
	return stream_is_ours(fp) ? print(fp, format, ap) : sys.vfwprintf(fp, format, ap);
}

EXPORT int fwprintf(FILE *fp, const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vfwprintf(fp, format, ap);
	va_end(ap);
	return n;
}

EXPORT int vwprintf(const wchar_t *format, va_list ap) { return vfwprintf(stdout, format, ap); }

EXPORT int wprintf(const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vfwprintf(stdout, format, ap);
	va_end(ap);
	return n;
}

/* @flag asks for checks of the format. */
EXPORT int __vfwprintf_chk(FILE *fp, int flag, const wchar_t *format, va_list ap)
{
	return stream_is_ours(fp) ? print(fp, format, ap) : sys.__vfwprintf_chk(fp, flag, format, ap);
}

EXPORT int __fwprintf_chk(FILE *fp, int flag, const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = __vfwprintf_chk(fp, flag, format, ap);
	va_end(ap);
	return n;
}

EXPORT int __vwprintf_chk(int flag, const wchar_t *format, va_list ap)
{
	return __vfwprintf_chk(stdout, flag, format, ap);
}

EXPORT int __wprintf_chk(int flag, const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = __vfwprintf_chk(stdout, flag, format, ap);
	va_end(ap);
	return n;
}

/* ---- scanning ---- */

/*
 * A stream of the C library's on a copy in memory of what comes next in @fp, @cap bytes at most; *@all: to
 * its end.
 */
static FILE *copy_ahead(FILE *fp, size_t cap, bool *all)
{
	char *buf = mem_alloc(cap);
	int fd = buf ? sys.memfd_create("plfs", MFD_CLOEXEC) : -1;
	size_t len = fd >= 0 ? fread_unlocked(buf, 1, cap, fp) : 0;
	FILE *copy = NULL;

	if (fd >= 0 && sys.pwrite(fd, buf, len, 0) == (ssize_t)len)
		copy = sys.fdopen(fd, "r");
	if (fd >= 0 && !copy)
		sys.close(fd);
	mem_free(buf);
	*all = len < cap;
	return copy;
}

/* vfwscanf() as programs of today call it, or as older ones do: "%as" differs. */
typedef int scan_fn(FILE *fp, const wchar_t *format, va_list ap);

/*
 * Where the C library stops reading in the copy is where the stream goes on. If it needs more, it is asked
 * again.
 */
static int scan_copy(scan_fn *real, FILE *fp, const wchar_t *format, va_list ap)
{
	off_t start = ftello(fp), used = 0;
	size_t cap = 4096;
	bool all = false, again = start >= 0;
	int n = EOF;

	while (again) {
		FILE *copy = copy_ahead(fp, cap, &all);
		va_list args;

		if (!copy)
			break;
		va_copy(args, ap);
		n = real(copy, format, args);
		va_end(args);
		used = ftello(copy);
		again = !all && used + MB_LEN_MAX >= (off_t)cap;
		sys.fclose(copy);
		fseeko(fp, start + (again ? 0 : used), SEEK_SET);
		cap *= 16;
	}
	if (n == EOF && all && getc_unlocked(fp) != EOF) /* to set the stream's own mark of the end */
		fseeko(fp, start + used, SEEK_SET);
	return n;
}

static int scan(scan_fn *real, FILE *fp, const wchar_t *format, va_list ap)
{
	int n;

	if (!stream_is_ours(fp))
		return real(fp, format, ap);
	begin(fp);
	n = scan_copy(real, fp, format, ap);
	end(fp);
	return n;
}

/*
 * The C library's headers turn the plain names into those of the language's version, so ours are told to the
 * linker by themselves.
 */
EXPORT int gnu_vfwscanf(FILE *fp, const wchar_t *format, va_list ap) __asm__("vfwscanf");
EXPORT int gnu_vwscanf(const wchar_t *format, va_list ap) __asm__("vwscanf");
EXPORT int gnu_fwscanf(FILE *fp, const wchar_t *format, ...) __asm__("fwscanf");
EXPORT int gnu_wscanf(const wchar_t *format, ...) __asm__("wscanf");
EXPORT int c99_vfwscanf(FILE *fp, const wchar_t *format, va_list ap) __asm__("__isoc99_vfwscanf");
EXPORT int c99_vwscanf(const wchar_t *format, va_list ap) __asm__("__isoc99_vwscanf");
EXPORT int c99_fwscanf(FILE *fp, const wchar_t *format, ...) __asm__("__isoc99_fwscanf");
EXPORT int c99_wscanf(const wchar_t *format, ...) __asm__("__isoc99_wscanf");
EXPORT int c23_vfwscanf(FILE *fp, const wchar_t *format, va_list ap) __asm__("__isoc23_vfwscanf");
EXPORT int c23_vwscanf(const wchar_t *format, va_list ap) __asm__("__isoc23_vwscanf");
EXPORT int c23_fwscanf(FILE *fp, const wchar_t *format, ...) __asm__("__isoc23_fwscanf");
EXPORT int c23_wscanf(const wchar_t *format, ...) __asm__("__isoc23_wscanf");

int gnu_vfwscanf(FILE *fp, const wchar_t *format, va_list ap) { return scan(sys.vfwscanf, fp, format, ap); }
int gnu_vwscanf(const wchar_t *format, va_list ap) { return scan(sys.vfwscanf, stdin, format, ap); }

int gnu_fwscanf(FILE *fp, const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = scan(sys.vfwscanf, fp, format, ap);
	va_end(ap);
	return n;
}

int gnu_wscanf(const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = scan(sys.vfwscanf, stdin, format, ap);
	va_end(ap);
	return n;
}

int c99_vfwscanf(FILE *fp, const wchar_t *format, va_list ap)
{
	return scan(sys.__isoc99_vfwscanf, fp, format, ap);
}
int c99_vwscanf(const wchar_t *format, va_list ap) { return scan(sys.__isoc99_vfwscanf, stdin, format, ap); }

int c99_fwscanf(FILE *fp, const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = scan(sys.__isoc99_vfwscanf, fp, format, ap);
	va_end(ap);
	return n;
}

int c99_wscanf(const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = scan(sys.__isoc99_vfwscanf, stdin, format, ap);
	va_end(ap);
	return n;
}

/* What programs built with glibc 2.38 and later call. */
int c23_vfwscanf(FILE *fp, const wchar_t *format, va_list ap)
{
	return scan(sys.__isoc23_vfwscanf, fp, format, ap);
}
int c23_vwscanf(const wchar_t *format, va_list ap) { return scan(sys.__isoc23_vfwscanf, stdin, format, ap); }

int c23_fwscanf(FILE *fp, const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = scan(sys.__isoc23_vfwscanf, fp, format, ap);
	va_end(ap);
	return n;
}

int c23_wscanf(const wchar_t *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = scan(sys.__isoc23_vfwscanf, stdin, format, ap);
	va_end(ap);
	return n;
}

/* ---- orientation ---- */

EXPORT int fwide(FILE *fp, int mode)
{
	if (!stream_is_ours(fp))
		return sys.fwide(fp, mode);
	if (mode > 0)
		stream_set_wide(fp);
	return stream_get_wide(fp) ? 1 : mode < 0 ? -1 : 0;
}
