/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wide characters on streams of files: written, read, pushed back, formatted, scanned, on standard streams
 * too.
 */
#include "posix.h"

#include <locale.h>
#include <wchar.h>

static FILE *open_in(const char *mode)
{
	setlocale(LC_ALL, "C.UTF-8");
	return fopen(at("f"), mode);
}

CASE(written_in_every_way)
{
	FILE *f = open_in("w");

	V(fwide(f, 0));
	V(fputwc(L'\u00e4', f));
	V(fwide(f, 0));
	V(fputws(L"\u20ac and \U0001f600\n", f) >= 0);
	V(fwprintf(f, L"%d %ls %s %lc|%5.2f|\n", 7, L"w\u00efde", "plain", (wint_t)0x3b1, 2.5));
	V(putwc(L'\n', f));
	V((long)ftell(f));
	V(fclose(f));
	show("f");
}

CASE(read_in_every_way)
{
	FILE *f;
	wchar_t line[64];

	make("f", "\303\244b\342\202\254\nsecond line\nno end");
	f = open_in("r");
	V(fwide(f, 1));
	V((long)fgetwc(f));
	V((long)ungetwc(L'\u00e4', f));
	V((long)getwc(f));
	V((long)ftell(f));
	V(fgetws(line, 3, f) != NULL);
	V((long)line[0]);
	V((long)wcslen(line));
	V(fgetws(line, 64, f) == line);
	V((long)wcslen(line));
	V(fgetws(line, 64, f) == line);
	V(wcscmp(line, L"second line\n"));
	V(fgetws(line, 64, f) == line);
	V(wcscmp(line, L"no end"));
	V(feof(f) != 0);
	V(fgetws(line, 64, f) == NULL);
	V(fgetwc(f) == WEOF);
	rewind(f);
	V((long)fgetwc(f));
	fclose(f);
}

CASE(bytes_that_are_no_characters)
{
	wchar_t line[64];
	FILE *f;

	make("f", "ok\n\377\376");
	f = open_in("r");
	V(fgetws(line, 64, f) == line);
	errno = 0;
	V(fgetwc(f) == WEOF);
	say("%s %d %d\n", strerrorname_np(errno), ferror(f) != 0, feof(f) != 0);
	fclose(f);
	f = open_in("w");
	setlocale(LC_ALL, "C");
	errno = 0;
	V(fputwc(L'x', f) == L'x');
	fclose(f);
	show("f");
}

CASE(scanned)
{
	wchar_t word[32] = L"";
	int a = 0, b = 0, n;
	FILE *f;

	make("f", "12 34 w\303\266rd\n56 x");
	f = open_in("r");
	n = fwscanf(f, L"%d%d", &a, &b);
	say("%d: %d %d\n", n, a, b);
	n = fwscanf(f, L"%31ls", word);
	say("%d: %zu %d\n", n, wcslen(word), word[1] == 0xf6);
	V((long)fgetwc(f));
	n = fwscanf(f, L"%d %d", &a, &b);
	say("%d: %d\n", n, a);
	V((long)fgetwc(f));
	n = fwscanf(f, L"%d", &a);
	say("%d eof %d\n", n, feof(f) != 0);
	fclose(f);
}

CASE(scanned_far)
{
	static wchar_t word[20001];
	FILE *f = open_in("w");

	for (int i = 0; i < 20000; i++)
		fputwc((wchar_t)(0x3b1 + i % 20), f);
	fputws(L" end", f);
	fclose(f);
	f = open_in("r");
	V(fwscanf(f, L"%20000ls", word));
	V((long)wcslen(word));
	V((long)word[19999]);
	V((long)fgetwc(f));
	V((long)fgetwc(f));
	fclose(f);
}

CASE(appended_and_read_again)
{
	FILE *f = open_in("w+");
	wchar_t line[64];

	fputws(L"\u00fcber\n", f);
	rewind(f);
	V(fgetws(line, 64, f) == line);
	V((long)line[0]);
	fseek(f, 0, SEEK_END);
	V(fputws(L"mehr\n", f) >= 0);
	fclose(f);
	f = open_in("a");
	V(fwprintf(f, L"%ls\n", L"\u00df"));
	fclose(f);
	show("f");
}

CASE(standard_streams)
{
	setlocale(LC_ALL, "C.UTF-8");
	make("in", "z\303\266gern 42\n");
	IN_CHILD({
		int fd = open(at("in"), O_RDONLY), out = open(at("out"), O_WRONLY | O_CREAT, 0644), n = 0;
		wchar_t word[20];

		dup2(fd, 0);
		dup2(out, 1);
		wscanf(L"%19ls %d", word, &n);
		wprintf(L"%ls and %d\n", word, n);
		putwchar(L'\u20ac');
		putwchar(L'\n');
		fflush(stdout);
	});
	show("out");
}
