# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Programs that people have open all day: git, compilers, databases, editors, archivers.
. "$HERE/common.bash"

_git() { # the same commits everywhere: fixed names, fixed times, no settings of the user
	_need git
	export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
		GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' \
		GIT_TERMINAL_PROMPT=0
	git() { command git -c init.defaultBranch=main -c gc.autoDetach=false -c advice.detachedHead=false "$@"; }
}

_repository() {
	_git
	git init -q $P/r
	cd $P/r
	seq 1 300 >numbers
	mkdir src
	echo 'int main(void) { return 0; }' >src/main.c
	ln -s src/main.c link
	git add .
	git commit -q -m first
	sed -i s/^200$/two-hundred/ numbers
	head -c 300000 /dev/zero | tr '\0' z >big
	git add big
	git commit -q -a -m second
}

_without_git_directories() { # their times and temporary names differ
	git -C "$1" log --format='%H %s'
	git -C "$1" status --short
	rm -rf "$1"/.git
}

git_add_commit_diff_and_log() {
	_repository
	git log --stat --format='%H %s'
	git diff HEAD~1 -- numbers
	git status --short
	echo untracked >new
	echo changed >>src/main.c
	git status --short
	git diff
	git stash -q
	git stash pop -q
	git mv numbers n2
	git rm -q --cached big
	git grep -c two
	git fsck --full 2>&1
	git show HEAD:numbers | md5sum
	_without_git_directories .
}

git_gc_fsck_and_clone() {
	_repository
	git gc -q
	git fsck --full 2>&1
	git count-objects -v | grep -v size
	git clone -q $P/r $P/c 2>&1
	git clone -q --bare --no-hardlinks $P/r $P/b.git 2>&1
	git -C $P/b.git fsck 2>&1
	rm -r $P/b.git
	diff -r --exclude=.git $P/r $P/c && echo same
	git -C $P/c verify-pack .git/objects/pack/*.idx && echo verified
	cd $P/c
	git config user.name x
	echo more >>numbers
	git commit -q -a -m third
	git push -q origin HEAD:other 2>&1
	git -C $P/r log --format='%H %s' other
	git -C $P/r archive --format=tar HEAD | tar tf - | sort
	_without_git_directories $P/c
	_without_git_directories $P/r
}

git_merge_rebase_bisect_and_worktree() {
	_repository
	git checkout -q -b side HEAD~1
	echo side >side
	git add side
	git commit -q -m side
	git rebase -q main
	git checkout -q main
	git merge -q --no-ff -m merged side
	git log --graph --format='%H %s'
	git worktree add -q $P/w HEAD~1 2>&1
	git -C $P/w status --short
	ls $P/w
	git worktree remove $P/w
	git bundle create -q $P/bundle main 2>&1
	git bundle verify -q $P/bundle 2>&1
	git format-patch -q -o $P/patches HEAD~2
	git reset -q --hard HEAD~2
	git am -q $P/patches/* 2>&1
	git reflog | wc -l
	rm -rf $P/bundle $P/patches
	_without_git_directories $P/r
}

make_and_gcc_build() {
	_source_tree
	make -s && make -q && echo up to date
	nm -g libpart.a
	ar t libpart.a
	touch part.h
	make -n | wc -l
	sleep 0.02
	echo '/* later */' >>part.c
	make -s part.so
	make -s -j2
	file -b prog part.so | cut -d, -f1,2
	cp prog /tmp/plfs-apps.$$ && /tmp/plfs-apps.$$ one two
	echo $?
	rm /tmp/plfs-apps.$$
	gdb=; strip -o stripped prog && [ "$(stat -c %s stripped)" -lt "$(stat -c %s prog)" ] && echo stripped
	objdump -d prog | grep -c '<main>'
	make -s clean
	ls
	rm -f part.so stripped
}

sqlite_rollback_journal() {
	_need sqlite3
	sqlite3 $P/db <<'SQL'
create table t(a integer primary key, b text);
begin;
with recursive c(n) as (select 1 union all select n + 1 from c where n < 3000) insert into t select n, hex(n * 7919) from c;
commit;
begin;
delete from t;
rollback;
select count(*), sum(a) from t;
create index i on t(b);
delete from t where a % 3 = 0;
vacuum;
pragma integrity_check;
select count(*), sum(a) from t;
SQL
	sqlite3 $P/db '.dump t' | md5sum
	sqlite3 $P/db ".backup $P/copy"
	sqlite3 $P/copy 'pragma integrity_check; pragma journal_mode=truncate; insert into t values(9000, 1); pragma journal_mode=persist; insert into t values(9001, 1);'
	sqlite3 $P/none/db 'select 1 from t'
	sqlite3 -readonly $P/db 'insert into t values(1, 1)'
	head -c 20000 /dev/zero | tr '\0' x | dd of=$P/copy bs=1k seek=8 conv=notrunc status=none
	sqlite3 $P/copy 'pragma integrity_check' | head -n 1 | cut -c1-30
	ls $P
	rm $P/copy*
}

sqlite_two_processes_with_a_journal() {
	_need sqlite3
	_counting $P/db 'pragma journal_mode=delete'
	rm $P/db
}

# The journal of a killed process is rolled back by the next.
sqlite_killed_in_a_transaction() {
	_need sqlite3
	sqlite3 $P/db 'create table t(x); insert into t values(1);'
	dash -c 'sqlite3 $P/db' 2>/dev/null <<'SQL'
pragma cache_size=5;
begin;
with recursive c(n) as (select 1 union all select n + 1 from c where n < 20000) insert into t select randomblob(100) from c;
select count(*) from t;
.shell kill -9 $PPID
SQL
	ls $P
	sqlite3 $P/db 'select count(*) from t; pragma integrity_check;'
	ls $P
	rm $P/*
}

_terminal() { # KEYS COMMAND: on a terminal of its own, keys typed one after the other
	/usr/bin/python3 - "$@" <<'PY'
import os, pty, select, sys, time
keys = sys.argv[1].encode().decode('unicode_escape').encode('latin1')
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    os.execvp(sys.argv[2], sys.argv[2:])
def drain(seconds):
    seen = False
    while select.select([fd], [], [], seconds)[0]:
        try:
            if not os.read(fd, 65536):
                return False
        except OSError:
            return False
        seen = True
    return True
for _ in range(50):
    if select.select([fd], [], [], 0.2)[0]:
        break
alive = drain(0.3)
for key in keys:
    if not alive:
        break
    os.write(fd, bytes([key]))
    alive = drain(0.02)
while alive:
    alive = drain(1)
print('exit', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}

vim_saves_a_file() {
	local vim
	for vim in vim.basic vim.tiny; do
		command -v $vim >/dev/null || continue
		printf 'one\ntwo\nthree\n' >$P/a
		chmod 640 $P/a
		$vim -u NONE -i NONE -n -es -c '%s/two/TWO/' -c 'wq' $P/a
		cat $P/a
		$vim -u NONE -i NONE -es -c 'set backupskip= backup backupcopy=no' -c '1d' -c 'w' -c "w $P/b.$vim" -c 'wq' $P/a
		$vim -u NONE -i NONE -es -c 'set backupskip= backupcopy=yes' -c 'normal Goappended' -c 'w' -c "saveas $P/c.$vim" -c 'wq' $P/a
		$vim -u NONE -i NONE -es -c "w! >> $P/a" -c 'q!' $P/b.$vim
		cat $P/a
		ls -a $P
	done
	[ -n "$(ls $P)" ] || _need vim.tiny
}

vim_on_a_terminal_with_a_swap_file() {
	_need vim.tiny
	printf 'one\ntwo\n' >$P/a
	_terminal "Gotyped\\x1b:w\\r:sp $P/new\\rinew file\\x1b:wqa\\r" vim.tiny -u NONE -i NONE $P/a
	cat $P/a
	ls -A $P
	cd $P && _terminal 'iin the directory\x1b:wq\r' vim.tiny -u NONE -i NONE n
	cat n
}

# A killed editor's swap file is recovered.
vim_recovers() {
	_need vim.tiny
	echo kept >$P/a
	_terminal 'ofrom the swap file\x1b:preserve\r:!kill -9 $PPID\r' vim.tiny -u NONE -i NONE $P/a
	ls -A $P
	vim.tiny -u NONE -i NONE -es -r -c "w! $P/b" -c 'q!' $P/a
	cat $P/b
	rm -f $P/.a.sw*
}

nano_saves_a_file() {
	_need nano
	printf 'one\ntwo\n' >$P/a
	_terminal 'typed \x0f\r\x18' nano -I $P/a
	_terminal 'new file\x0f\r\x18' nano -I $P/b
	_terminal 'backup \x0f\r\x18' nano -I -B $P/a
	cat $P/a $P/b
	ls -A $P
}

ed_and_sponges() {
	_need ed
	printf 'a\nb\nc\n' >$P/a
	printf '2d\n$a\nnew\n.\nw\nr %s\nw %s\nq\n' $P/a $P/b | ed -s $P/a
	cat $P/a $P/b
	printf 'g/a/s//A/\nw\nq\n' | ed $P/a
}

rsync_twice_with_deletion() {
	local out
	_need rsync
	out=$(mktemp -d)
	mkdir -p $P/s/d
	seq 1 20000 >$P/s/numbers
	echo x >$P/s/d/x
	ln -s d/x $P/s/l
	ln $P/s/d/x $P/s/hard
	: >$P/s/empty
	chmod 600 $P/s/d/x
	find $P/s -exec touch -h -d '2021-02-03 04:05:06' {} +
	rsync -aH --delete $P/s/ $P/t
	rsync -aH --delete --itemize-changes $P/s/ $P/t
	rsync -aH $P/s/ $out/t
	diff -r $P/s $out/t && find $out/t -type f -printf '%P %m %s %t %n\n' | sort
	sed -i '5000s/.*/changed/' $P/s/numbers
	rm $P/s/empty
	echo new >$P/s/new
	touch -d '2021-02-03 04:05:07' $P/s/numbers $P/s/new $P/s
	rsync -aH --delete --itemize-changes --no-whole-file $P/s/ $P/t | sort
	rsync -aHc --inplace --no-whole-file --delete $P/s/ $out/t
	rsync -aHS --append-verify $out/t/ $P/u
	rsync -anc --delete --itemize-changes $out/t/ $P/s
	diff -r $P/s $P/t && diff -r $P/s $P/u && echo same
	rsync -a --partial --backup --suffix=.old $P/s/d/ $P/t
	rsync -a $P/none $P/t 2>&1 | sed 's/(.*//'
	rm -r $out
}

cpio_in_and_out() {
	_need cpio
	mkdir -p $P/s/d
	seq 1 3000 >$P/s/a
	echo x >$P/s/d/x
	ln $P/s/a $P/s/hard
	ln -s a $P/s/l
	find $P/s -exec touch -h -d '2021-02-03 04:05:06' {} +
	cd $P
	find s | sort | cpio -o -H newc --reproducible --quiet >"ar"
	cpio -t --quiet <"ar"
	mkdir x y
	(cd x && cpio -idm --quiet <../ar)
	(cd s && find . -depth | cpio -pdml --quiet ../y 2>&1)
	(cd s && find . -depth | cpio -pdm --quiet ../z 2>&1)
	diff -r s x/s && diff -r s y && diff -r s z && echo same
	find x/s y z -type f -printf '%p %n %t\n' | sort
	echo d/x | (cd s && cpio -o -H ustar --quiet -F ../tar)
	(cd s && echo a | cpio -o -A -H ustar --quiet -F ../tar)
	tar tf tar
	rm ar tar
}

# As xz 5.6 and later: it locks itself out of the file system, where the kernel can, and then writes on.
landlocked() {
	/usr/bin/python3 - <<'END' 2>&1
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
out = os.open(os.environ['P'] + '/out', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
if libc.syscall(444, None, 0, 1) > 0:
    ruleset = libc.syscall(444, ctypes.byref(ctypes.c_uint64(0x1fff)), 8, 0)
    libc.prctl(38, 1, 0, 0, 0) or ruleset > 0 and libc.syscall(446, ruleset, 0)
for n in range(50):
    os.write(out, bytes([65 + n]) * 10000)
os.close(out)
END
	md5sum <$P/out
}

zstd_and_xz_on_files() {
	_need zstd xz
	seq 1 20000 >$P/a
	touch -d '2021-02-03 04:05:06' $P/a
	cp -p $P/a $P/b
	zstd -q $P/a && zstd -q -d -f $P/a.zst -o $P/c && cmp $P/b $P/c && echo same
	zstd -q -t $P/a.zst && echo fine
	zstd -q --rm $P/c && ls $P
	zstd -dcq <$P/c.zst | cmp - $P/b && echo same
	xz -T2 $P/a && xz -l $P/a.xz | awk 'NR == 2 {print $1, $2}' && xz -d $P/a.xz
	stat -c '%y %a' $P/a
	tar --zstd -C $P -cf $P/t.tzst a b && tar -xOf $P/t.tzst b | cmp - $P/b && echo same
	rm $P/*.zst $P/t.tzst
}

zip_updates_and_tests() {
	_need zip unzip
	cd $P
	mkdir d
	seq 1 5000 >d/a
	echo x >d/b
	touch -d '2021-02-03 04:05:06' d/*
	zip -q -r -X z.zip d
	unzip -l z.zip | awk '{print $1, $4}'
	echo y >>d/b
	echo c >d/c
	touch -d '2021-02-03 04:05:10' d/b d/c
	zip -q -X -u z.zip d/*
	zip -q -d z.zip d/a
	unzip -tq z.zip
	unzip -q z.zip -d out
	unzip -p z.zip d/b
	zip -q -F z.zip --out fixed.zip && unzip -tq fixed.zip
	unzip -q none.zip
	rm *.zip
}

scripting_tools() {
	_need bc xargs
	! command -v tclsh >/dev/null || echo 'set f [open $env(P)/tcl w+]; puts $f one; puts -nonewline $f two; seek $f 2; puts [read $f]; chan truncate $f 5; close $f
		set f [open $env(P)/tcl a+]; puts $f three; seek $f 0; puts [read $f]; file copy $env(P)/tcl $env(P)/tcl2
		puts [file size $env(P)/tcl2]; puts [lsort [glob -tails -directory $env(P) *]]' | tclsh
	echo '2^100' >$P/sum && bc $P/sum && bc <$P/sum
	seq 1 40 | xargs -P 4 -n 1 sh -c 'echo job $0 >>$P/jobs'
	sort -o $P/jobs $P/jobs
	logsave -a $P/logged echo logged >/dev/null 2>&1; script -q -c 'echo typed' $P/typescript >/dev/null
	grep -c typed $P/typescript
	rm -f $P/typescript $P/logged
}
