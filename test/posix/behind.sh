# SPDX-License-Identifier: BSD-3-Clause
# Another library loaded behind this one, which has an open() and an fopen() of its own: it is to see what the program
# opens elsewhere, and links that lead from there to logical files lead to their bytes all the same.

_build() { # makes $D, with behind.so and links
	D=$(mktemp -d) || exit 3
	trap 'rm -rf "$D"' EXIT
	cat >"$D/behind.c" <<-'end'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <fcntl.h>
		#include <stdarg.h>
		#include <stdio.h>
		#include <string.h>
		#include <unistd.h>

		static void tell(const char *call, const char *path)
		{
			if (strstr(path, "seen"))
				dprintf(2, "%s of %s\n", call, strrchr(path, '/') + 1);
		}

		int open(const char *path, int flags, ...)
		{
			int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
			va_list ap;
			int mode;

			va_start(ap, flags);
			mode = va_arg(ap, int);
			va_end(ap);
			tell("open", path);
			return real(path, flags, mode);
		}
		int open64(const char *, int, ...) __attribute__((alias("open")));

		FILE *fopen(const char *path, const char *mode)
		{
			FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");

			tell("fopen", path);
			return real(path, mode);
		}
		FILE *fopen64(const char *, const char *) __attribute__((alias("fopen")));
	end
	gcc -shared -fPIC -o "$D/behind.so" "$D/behind.c" -ldl || exit 3
	echo elsewhere >"$D/seen"
	echo below >"$P/f"
	ln -s "$P/f" "$D/l"
	ln -s "$P" "$D/d"
	LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$D/behind.so
	export LD_PRELOAD
}

opens_are_seen() {
	_build
	cat "$D/seen"
	sed s/e/E/ "$D/seen"
	awk '{ print }' "$D/seen"
	echo more >>"$D/seen"
	wc -l <"$D/seen"
}

links_lead_to_bytes() {
	_build
	cat "$D/l" "$D/d/f"
	sed s/e/E/ "$D/l"
	awk '{ print }' "$D/d/f"
	bash -c 'echo more >>"$0/l"; echo new >"$0/d/g"; cat <"$0/d/f"; echo shorter >"$0/l"' "$D"
	cat "$P/f" "$P/g"
	python3 -c 'import sys; f = open(sys.argv[1] + "/d/f", "r+"); f.write("SH"); f.close(); print(open(sys.argv[1] + "/l").read())' "$D"
}
