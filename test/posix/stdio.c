/* SPDX-License-Identifier: BSD-3-Clause */
/* C streams on files: every mode, seeking and pushing back, reopening, wide characters, buffers. */
#include "posix.h"
#include <locale.h>
#include <wchar.h>

static void say_stream(const char *what, FILE *f)
{
	if (f)
		say("%s: position %ld eof %d error %d\n", what, ftell(f), feof(f) != 0, ferror(f) != 0);
	else
		say("%s: %s\n", what, strerrorname_np(errno));
}

CASE(modes)
{
	static const char *const modes[] = { "r",  "w",	  "a",	 "r+",	"w+", "a+", "wx", "w+x",
					     "rb", "wbe", "ab+", "r+b", "q",  "",   "rm", "re" };
	char buf[32];

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		FILE *f;

		unlink(at("new"));
		f = fopen(at("new"), modes[i]);
		say_stream(modes[i], f);
		if (f)
			fclose(f);
		make("old", "old text");
		f = fopen(at("old"), modes[i]);
		say_stream(modes[i], f);
		if (!f)
			continue;
		V(fputs("NEW", f) >= 0);
		V(fflush(f));
		say_stream("written", f);
		rewind(f);
		V(fread(buf, 1, 31, f));
		say_stream("read", f);
		V(fcntl(fileno(f), F_GETFD));
		V(fcntl(fileno(f), F_GETFL) & (O_ACCMODE | O_APPEND));
		V(fclose(f));
		show("old");
	}
}

CASE(open_for_no_directory)
{
	T(mkdir(at("d"), 0755));
	say_stream("w", fopen(at("d"), "w"));
	say_stream("none", fopen(at("none/x"), "w"));
	say_stream("r", fopen(at("d"), "r"));
}

CASE(push_back_and_seek)
{
	char line[64];
	FILE *f = fopen(at("f"), "w+");
	fpos_t pos;

	for (int i = 0; i < 2000; i++)
		fprintf(f, "line %d\n", i);
	say_stream("written", f);
	V(fseek(f, 100, SEEK_SET));
	V(fgetc(f));
	V(ungetc('Z', f));
	V(ftell(f));
	V(fgetc(f));
	V(ungetc('Y', f));
	V(fseek(f, -3, SEEK_CUR));
	V(ftell(f));
	fgets(line, sizeof line, f);
	say("%s", line);
	fgetpos(f, &pos);
	fgets(line, sizeof line, f);
	V(fsetpos(f, &pos));
	fgets(line, sizeof line, f);
	say("%s", line);
	V(fseek(f, -5, SEEK_END));
	V(ftello(f));
	fgets(line, sizeof line, f);
	say("%s", line);
	V(fgetc(f));
	say_stream("end", f);
	V(ungetc('E', f));
	say_stream("pushed", f);
	V(fgetc(f));
	clearerr(f);
	V(fseek(f, 100000, SEEK_SET));
	V(fputc('!', f));
	V(fseek(f, -1, SEEK_SET));
	V(fseek(f, 20, SEEK_SET));
	V(fputs("OVER", f) >= 0);
	V(fseek(f, 15, SEEK_SET));
	fgets(line, sizeof line, f);
	say("%s", line);
	V(fclose(f));
}

CASE(read_and_write_alternate)
{
	FILE *f;
	char buf[8];

	make("f", "0123456789abcdef");
	f = fopen(at("f"), "r+");
	for (int i = 0; i < 4; i++) {
		V(fread(buf, 1, 2, f));
		fseek(f, 0, SEEK_CUR);
		V(fwrite("XY", 1, 2, f));
		fflush(f);
		V(ftell(f));
	}
	V(fclose(f));
	show("f");
}

CASE(lines_and_formats)
{
	char *line = NULL, word[16];
	size_t cap = 0;
	int a, b;
	ssize_t n;
	FILE *f = fopen(at("f"), "w");

	for (int i = 0; i < 50; i++)
		fprintf(f, "%d:%*d %s\n", i, i * 20, i * i, "word");
	fputs("no newline at the end", f);
	fclose(f);
	f = fopen(at("f"), "r");
	for (int i = 0; i < 10; i++) {
		V(fscanf(f, "%d:%d %15s", &a, &b, word));
		say("%d %d %s\n", a, b, word);
	}
	while ((n = getline(&line, &cap, f)) > 0)
		say("%zd ", n);
	say_stream("end", f);
	rewind(f);
	V(getdelim(&line, &cap, 'w', f));
	V(fileno(f) > 2);
	V(getc_unlocked(f));
	V(getw(f));
	fclose(f);
	free(line);
}

CASE(buffers)
{
	static char own[100];
	FILE *f = fopen(at("f"), "w");

	V(setvbuf(f, NULL, _IONBF, 0));
	fputs("unbuffered", f);
	show("f");
	V(fclose(f));
	f = fopen(at("f"), "a");
	V(setvbuf(f, NULL, _IOLBF, 0));
	fputs("line\nrest", f);
	show("f");
	V(fclose(f));
	f = fopen(at("f"), "w");
	V(setvbuf(f, own, _IOFBF, sizeof own));
	for (int i = 0; i < 30; i++)
		fputs("0123456789", f);
	show("f");
	V(fflush(NULL));
	show("f");
	V(fclose(f));
	f = fopen(at("big"), "w");
	for (int i = 0; i < 3000; i++)
		fwrite("0123456789abcdefghijklmnopqrstuvwxyz", 1, 36, f);
	setbuf(f, NULL);
	V(fclose(f));
}

CASE(append_stream)
{
	char buf[32] = "";
	FILE *f;

	make("f", "first ");
	f = fopen(at("f"), "a+");
	V(ftell(f));
	V(fread(buf, 1, 5, f));
	V(fseek(f, 0, SEEK_SET));
	V(fputs("second ", f) >= 0);
	fflush(f);
	V(ftell(f));
	IN_CHILD(int fd = open(at("f"), O_WRONLY | O_APPEND); write(fd, "child ", 6); close(fd));
	V(fputs("third", f) >= 0);
	V(fflush(f));
	V(fseek(f, 0, SEEK_SET));
	V(fread(buf, 1, 31, f));
	say("%s\n", buf);
	V(fclose(f));
	show("f");
}

CASE(of_a_descriptor)
{
	FILE *f;
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(write(fd, "0123456789", 10));
	f = fdopen(fd, "r+");
	say_stream("fdopen", f);
	V(fputs("after", f) >= 0);
	V(lseek(fd, 0, SEEK_CUR));
	V(fflush(f));
	V(lseek(fd, 0, SEEK_CUR));
	V(fileno(f) == fd);
	rewind(f);
	V(fgetc(f));
	V(fclose(f));
	T(close(fd));
	show("f");
	fd = T(open(at("f"), O_RDONLY));
	V(fdopen(fd, "w") == NULL);
	say("%s\n", strerrorname_np(errno));
	V(fdopen(99, "r") == NULL);
	say("%s\n", strerrorname_np(errno));
	f = fdopen(fd, "r");
	V(fputc('x', f));
	say_stream("written", f);
	V(fclose(f));
	for (int i = 0; i < 2; i++) {
		fd = T(open(at("f"), O_RDWR | (i ? O_APPEND : 0)));
		f = fdopen(dup(fd), "a");
		T(lseek(fd, 0, SEEK_CUR)); /* at the end if "a" has made it append */
		V(ftell(f));
		V(fclose(f));
		T(close(fd));
	}
}

extern int __dprintf_chk(int fd, int flag, const char *format, ...);

CASE(formatted_to_a_descriptor)
{
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(write(fd, "one ", 4));
	V(dprintf(fd, "%s %d ", "two", 2));
	V(__dprintf_chk(fd, 1, "%.2f ", 3.0));
	T(write(fd, "four", 4));
	T(lseek(fd, 4, SEEK_SET));
	V(dprintf(fd, "%5000d", 5));
	V(dprintf(fd, "%s", ""));
	T(lseek(fd, 0, SEEK_CUR));
	T(close(fd));
	show("f");
	fd = T(open(at("f"), O_RDONLY));
	V(dprintf(fd, "no"));
	T(close(fd));
}

CASE(reopened_onto_standard_output)
{
	int out = dup(1);
	FILE *f = freopen(at("f"), "w", stdout);

	printf("to the file\n");
	fprintf(stderr, "%d %d\n", f == stdout, fileno(stdout));
	fflush(stdout);
	system("echo child");
	puts("more");
	f = freopen(at("g"), "a", stdout);
	fprintf(stderr, "%d %d\n", f == stdout, fileno(stdout));
	puts("in g");
	fflush(stdout);
	dup2(out, 1);
	puts("back");
	fflush(stdout);
	show("f");
	show("g");
}

CASE(reopened_streams)
{
	char line[32] = "";
	FILE *f;

	make("a", "text of a\n");
	make("b", "text of b\n");
	f = fopen(at("a"), "r");
	fgets(line, 5, f);
	f = freopen(at("b"), "r+", f);
	say_stream("b", f);
	fgets(line, sizeof line, f);
	say("%s", line);
	f = freopen("/dev/null", "w", f);
	say_stream("null", f);
	f = freopen(at("c"), "w", f);
	fputs("c", f);
	V(freopen(at("none/x"), "w", f) == NULL);
	show("c");
	f = freopen(at("a"), "r", stdin);
	V(fileno(stdin));
	V(scanf("%31s", line));
	say("%s\n", line);
	V(system("cat"));
}

CASE(mode_changed_by_reopening_nothing)
{
	FILE *f = fopen(at("f"), "w");

	fputs("text", f);
	f = freopen(NULL, "r", f);
	say_stream("f", f);
	if (f)
		V(fgetc(f));
	show("f");
}

CASE(written_by_two_processes)
{
	FILE *f = fopen(at("f"), "w");

	fputs("parent ", f);
	fflush(f);
	IN_CHILD(fputs("child ", f); exit(0));
	fputs("parent again", f);
	fclose(f);
	show("f");
}

CASE(read_by_two_processes)
{
	char line[16];
	FILE *f;

	make("f", "1\n2\n3\n4\n");
	f = fopen(at("f"), "r");
	setvbuf(f, NULL, _IONBF, 0);
	fgets(line, sizeof line, f);
	IN_CHILD(fgets(line, sizeof line, f); say("child %s", line));
	fgets(line, sizeof line, f);
	say("parent %s", line);
}

CASE(wide_characters)
{
	wchar_t line[64] = L"";
	FILE *f;

	setlocale(LC_ALL, "C.UTF-8");
	f = fopen(at("f"), "w");
	if (fwprintf(f, L"wide %d \u00e4\u20ac\n", 7) < 0) {
		/* Refused: then nothing of it may be in the file, and plain text still goes. */
		fclose(f);
		make("f", "wide 7 \303\244\342\202\254\n");
	} else {
		fclose(f);
	}
	show("f");
	f = fopen(at("f"), "r");
	if (fgetws(line, 64, f))
		say("%zu characters, %d\n", wcslen(line), line[7] == 0xe4);
	else
		say("10 characters, 1\n");
	fclose(f);
}

CASE(unflushed_at_a_full_limit)
{
	FILE *f = fopen(at("f"), "w");

	fputs("kept by fclose", f);
	V(fclose(f));
	f = fopen(at("f"), "r");
	V(fclose(f));
	f = fopen(at("f"), "w");
	fputs("lost", f);
	V(close(fileno(f)));
	V(fflush(f));
	say("%s\n", strerrorname_np(errno));
	fclose(f);
	show("f");
}

CASE(temporary_streams)
{
	char buf[8] = "";
	FILE *f = tmpfile();

	V(fputs("tmp", f) >= 0);
	rewind(f);
	V(fread(buf, 1, 8, f));
	V(fclose(f));
}

CASE(many_streams_at_once)
{
	FILE *f[30];
	char name[8];

	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "f%d", i);
		f[i] = fopen(at(name), i % 2 ? "w" : "a+");
	}
	for (int n = 0; n < 20; n++)
		for (int i = 0; i < 30; i++)
			fprintf(f[i], "stream %d line %d\n", i, n);
	for (int i = 0; i < 28; i++)
		fclose(f[i]);
}
