# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# The everyday tools: coreutils, sed, tar, gzip, find and what they ask of a file system.

_some() { # a few files and a directory, all with a fixed time
	mkdir $P/s $P/s/d
	seq 1 2000 >$P/s/numbers
	echo hello >$P/s/d/hello
	: >$P/s/empty
	head -c 100000 /dev/zero >$P/s/zeros
	chmod 640 $P/s/numbers
	chmod 751 $P/s/d/hello
	ln -s d/hello $P/s/link
	find $P/s -exec touch -h -d '2021-02-03 04:05:06.789' {} +
}

_times() {
	find "$@" -printf '%P %t\n' | sort
}

cp_into_within_and_out() {
	local out=$(mktemp -d)
	seq 1 500 >$out/a
	cp $out/a $P/a
	cp $P/a $P/b
	cp $P/b $out/c
	cmp $out/a $out/c && echo same
	cp $P/a $P/a 2>&1
	cp -n $out/a $P/b
	cp -r $P/none $P/x 2>&1
	rm -r $out
}

cp_keeps_attributes() {
	_some
	cp -p $P/s/numbers $P/p
	cp -a $P/s $P/a
	_times $P/p $P/a
	diff -r $P/s $P/a && echo same
}

cp_out_keeps_attributes() {
	local out=$(mktemp -d)
	_some
	cp -a $P/s $out/a
	_times $out/a
	find $out/a -type f -printf '%P %y %m %s\n' | sort
	diff -r $P/s $out/a && echo same
	rm -r $out
}

cp_reflink_and_sparse() {
	_some
	cp --reflink=auto $P/s/numbers $P/a
	cp --sparse=always $P/s/zeros $P/b
	truncate -s 1M $P/hole
	echo end >>$P/hole
	cp --sparse=auto $P/hole $P/c
	cp --sparse=never $P/hole $P/d
	cmp $P/hole $P/c && cmp $P/hole $P/d && echo same
	cp --reflink=always $P/s/numbers $P/e 2>/dev/null
	rm -f $P/e
}

cp_over_existing_and_backup() {
	echo old old old >$P/a
	echo new >$P/b
	cp $P/b $P/a
	cp --backup=numbered $P/b $P/a
	cp --remove-destination $P/b $P/a
	cp -f $P/b $P/a
	cp -l $P/a $P/hard
	cp -s $P/a $P/soft
}

mv_within_into_and_out() {
	local out=$(mktemp -d)
	_some
	mv $P/s/numbers $P/n
	mv $P/n $P/s/d/numbers
	echo x >$P/x; echo y >$P/y
	mv $P/x $P/y
	mv $P/s $P/t
	mv $P/t/d/numbers $out/
	mv $out/numbers $P/back
	mv $P/t $out/t
	find $out -type f -printf '%P %y %m %s\n' | sort
	mv $out/t $P/t
	_times $P/t/d/hello $P/t/zeros $P/back
	mv -n $P/y $P/back
	mv $P/none $P/z
	mv $P/t $P/t/d
	rmdir $out
}

install_with_mode() {
	echo prog >$P/a
	install -m 755 $P/a $P/b
	install -d -m 700 $P/d/e
	install -m 600 -p $P/a $P/d/e/c
	install -D $P/a $P/f/g/h
}

dd_seek_and_skip() {
	seq 1 1000 >$P/a
	dd if=$P/a of=$P/b bs=100 skip=3 seek=2 count=4 status=none
	dd if=$P/a of=$P/b bs=7 skip=1 seek=50 count=4 conv=notrunc,fsync status=none
	dd if=/dev/zero of=$P/b bs=1 seek=5 count=2 conv=notrunc,fdatasync status=none
	echo tail | dd of=$P/b oflag=append conv=notrunc status=none
	dd if=$P/a of=$P/c bs=64k conv=sparse status=none
	dd of=$P/d bs=1 count=0 seek=12345 status=none
	dd if=$P/a of=$P/e conv=excl status=none
	dd if=$P/a of=$P/e conv=excl status=none
	dd if=$P/a of=$P/none conv=nocreat status=none
	dd if=$P/a bs=10 iflag=skip_bytes,count_bytes skip=33 count=25 status=none
	dd if=$P/a of=$P/f bs=512 oflag=sync,dsync status=none
}

truncate_up_and_down() {
	truncate -s 10 $P/a
	echo hello >$P/b
	truncate -s 3 $P/b
	truncate -s 8 $P/b
	truncate -s +5 $P/b
	truncate -s '<6' $P/b
	truncate -r $P/b $P/c
	truncate -c -s 5 $P/none
	od -c $P/b
	truncate -s -1 $P/a
	truncate -s 5 $P 2>&1
}

links() {
	echo one >$P/a
	ln $P/a $P/b
	echo two >>$P/b
	cat $P/a
	ln -s a $P/c
	ln -s $P/a $P/d
	cat $P/c $P/d
	ln -s none $P/e
	cat $P/e
	ln -sf b $P/c
	ln -f $P/b $P/d
	echo three >$P/e
	readlink $P/c $P/e
	readlink -f $P/c $P/e $P/none
	readlink -e $P/none || echo missing
	realpath $P/../${P##*/}/./c
	rm $P/a
	cat $P/b
	ln $P/none $P/x
	ln $P $P/x
	stat -c '%n %h' $P/b $P/d
}

absolute_symlinks_into_the_tree() {
	mkdir $P/d
	echo x >$P/d/f
	ln -s $P/d $P/l
	ln -s $P/d/f $P/m
	cat $P/l/f $P/m
	readlink $P/l
	readlink -f $P/l/f
	echo y >$P/l/g
	(cd $P/l && /bin/pwd -P && cat g)
	local out=$(mktemp -d)
	ln -s $P/d $out/in
	cat $out/in/f
	(cd $out/in && /bin/pwd -P)
	rm -r $out
}

touch_and_stat() {
	touch -d '2001-02-03 04:05:06' $P/a
	echo x >$P/b
	touch -d '1999-12-31 23:59:59.123456789' $P/b
	touch -r $P/b $P/c
	touch -a -d '2010-01-01' $P/b
	touch -c $P/none
	stat -c '%n %s %F %a %h %y %X %Y' $P/a $P/b $P/c
	stat -c '%s %F' $P/none
	stat -L -c '%F %a' $P
	stat -c '%u %g %U %G %t %T' $P/a
	touch $P/a/b
}

times_of_writes() {
	touch -d '2001-01-01' $P/a $P/b $P/c
	echo x >>$P/a
	[ $P/a -nt $P/b ] && echo 'a write moves it'
	: >>$P/b
	[ $P/b -nt $P/c ] || echo 'opening does not'
	cat $P/c
	stat -c %y $P/b $P/c
	touch -d '2001-01-01' $P
	: >$P/d
	[ $P -nt $P/b ] && echo 'a new name moves the directory'
}

ls_in_many_ways() {
	_some
	: >$P/s/.hidden
	ls $P/s
	ls -a $P/s
	ls -lR --time-style=full-iso $P/s | grep -v ^total | sed 's/^\(d[^ ]* *[0-9]* *[^ ]* *[^ ]*\) *[0-9]*/\1/'
	ls -F --color=always $P/s
	ls -S $P/s
	ls -d $P $P/s/*
	ls -la $P/s | awk '$1 != "total" {print $1, $2, $NF}'
	ls -n $P/s/numbers | awk '{print $1, $2, $3, $4, $5}'
	ls $P/none
	ls $P/s/numbers/x
}

tail_and_head() {
	seq 1 3000 >$P/a
	tail -n 3 $P/a
	tail -c 12 $P/a
	tail -c +13880 $P/a
	head -c 10 $P/a
	head -n -2998 $P/a
	tail -n 2 <$P/a
	tac $P/a | head -n 2
}

tail_follows_a_growing_file() {
	echo one >$P/log
	timeout 10 tail -f -s 0.1 -n +1 --pid=$$ $P/log >$P/out 2>/dev/null &
	local pid=$! i
	for i in 2 3 4; do
		sleep 0.15
		echo "line $i" >>$P/log
	done
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(wc -l <$P/out)" = 4 ] && break
		sleep 0.1
	done
	kill $pid
	wait $pid 2>/dev/null
	cat $P/out
}

split_and_join() {
	seq 1 2000 >$P/a
	cd $P
	split -b 3000 a part.
	split -n 4 a quarter.
	split -l 700 -d a lines.
	cat part.* | cmp - a && cat quarter.* | cmp - a && cat lines.* | cmp - a && echo same
	csplit -s a 100 500
}

tee_appends() {
	echo one | tee $P/a $P/b
	echo two | tee -a $P/a >/dev/null
	echo three | tee $P/none/x
}

sort_onto_itself() {
	seq 500 -1 1 >$P/a
	sort -n -o $P/a $P/a
	head -n 2 $P/a
	sort -T $P -S 1k -n -r $P/a >$P/b
	sort -c $P/b
	uniq $P/a $P/c
	shuf --random-source=/dev/zero $P/a >$P/d
	join $P/a $P/a | head -n 1
}

sed_in_place() {
	printf 'a\nb\nc\n' >$P/a
	chmod 640 $P/a
	sed -i s/b/B/ $P/a
	sed -i.bak 2d $P/a
	cat $P/a $P/a.bak
	sed -n '$=' $P/a
	sed -i 'w '$P'/w' $P/a
	ln -s a $P/l
	sed -i --follow-symlinks s/a/A/ $P/l
	sed -i s/x/y/ $P/none
}

tar_create_and_extract() {
	_some
	ln $P/s/empty $P/s/hard
	touch -d '2021-02-03 04:05:06' $P/s
	tar -C $P -cf $P/t.tar --sort=name s
	tar -tf $P/t.tar
	mkdir $P/x
	tar -C $P/x -xf $P/t.tar
	_times $P/x/s
	diff -r $P/s $P/x/s && echo same
	tar -C $P -df $P/t.tar && echo 'tar finds no difference'
	tar -C $P -czf $P/t.tgz --sort=name s
	tar -xzOf $P/t.tgz s/d/hello
	tar -C $P -rf $P/t.tar s/numbers
	tar -tf $P/t.tar | wc -l
	tar -C $P --delete -f $P/t.tar s/numbers
	tar -tf $P/t.tar | wc -l
	rm $P/t.t*
}

tar_sparse_file() {
	truncate -s 300000 $P/h
	echo middle | dd of=$P/h bs=1 seek=150000 conv=notrunc status=none
	tar -C $P -cSf $P/t.tar h
	mkdir $P/x
	tar -C $P/x -xf $P/t.tar
	cmp $P/h $P/x/h && echo same
	rm $P/t.tar
}

compressors() {
	seq 1 5000 >$P/a
	touch -d '2021-02-03 04:05:06' $P/a
	cp -p $P/a $P/b
	gzip -n $P/a
	ls $P
	gzip -l $P/a.gz | sed "s|$P|P|"
	gunzip $P/a.gz
	cmp $P/a $P/b && echo same
	xz -k $P/a && xz -dc $P/a.xz | cmp - $P/b && echo same
	bzip2 -k $P/a && bunzip2 -c $P/a.bz2 | cmp - $P/b && echo same
	stat -c '%y %a' $P/a
	rm -f $P/a.*
	gzip -c $P/a >$P/c.gz; zcat $P/c.gz | tail -n 1; rm $P/c.gz
}

find_by_everything() {
	_some
	cd $P
	find . -name 'n*' -o -type l | sort
	find . -size +50k | sort
	find . -empty | sort
	find . -newermt 2021-02-01 ! -newermt 2021-02-05 | sort
	find . -perm 751
	find . -type f -exec cat {} + | md5sum
	find . -links +1 -type f
	find $P -maxdepth 1 | sort
	find . -name hello -delete
	find . -depth -type d | sort
	find . -samefile s/numbers
}

rm_and_rmdir() {
	_some
	cp -a $P/s $P/t
	rm $P/s/numbers
	rm $P/s/d
	rm -f $P/none
	rm $P/none
	rmdir $P/s
	rmdir $P/s/d/hello
	rm -r $P/s
	mkdir -p $P/a/b/c
	rmdir -p --ignore-fail-on-non-empty $P/a/b/c
	rm -rf $P/t
	rm -d $P/a
	mkdir $P/t
	mkdir $P/t
	mkdir $P/x/y
	mkdir -m 1777 $P/u
	unlink $P/t
}

# The sticky bit means nothing on a regular file of Linux; it is the library's, and programs never see it.
chmod_all_bits() {
	echo x >$P/a
	local m
	for m in 000 444 222 111 755 4755 2755 6711 6777 600; do
		chmod $m $P/a
		stat -c '%a %A' $P/a
	done
	chmod u+x,g=u,o-rwx $P/a
	stat -c %a $P/a
	chmod 600 $P/a
	cat $P/a
	mkdir $P/d
	chmod 3775 $P/d
	: >$P/d/f
	chmod -R g-w $P/d
	chmod 644 $P/none
}

umask_of_new_files() {
	local m
	for m in 000 022 027 077 777; do
		(umask $m; : >$P/f$m; mkdir $P/d$m)
	done
	stat -c %a $P/f* $P/d*
}

chown_when_root() {
	echo x >$P/a
	ln -s a $P/l
	if [ "$(id -u)" = 0 ]; then
		chown 12:34 $P/a
		chown -h 56 $P/l
		chgrp 78 $P/a
		chmod 4755 $P/a
		stat -c '%u %g %a' $P/a $P/l
		chown 0:0 $P/a
		chown -R 1:2 $P
		echo y >>$P/a
		find $P -printf '%U %G %m\n'
		chown 0:0 $P
	fi
	chown "$(id -u)" $P/none
}

du_and_df() {
	_some
	du -b $P/s/numbers $P/s/d/hello | sed "s|$P|P|"
	du --apparent-size -k $P/s/zeros
	df $P >/dev/null && echo df
	df --output=target $P/s/numbers >/dev/null && echo df of a file
	du -k $P/none
}

mktemp_in_it() {
	local f d
	f=$(mktemp $P/t.XXXXXX) && stat -c '%a %s' $f
	d=$(mktemp -d $P/d.XXXXXX) && stat -c %a $d
	f=$(TMPDIR=$P mktemp) && echo x >$f && cat $f
	rm -r $P/t.* $P/d.* $P/tmp.*
}

diff_and_patch() {
	seq 1 100 >$P/a
	sed 's/^50$/fifty/' $P/a >$P/b
	diff -u --label a --label b $P/a $P/b >$P/p
	cd $P
	patch -s a p && cmp a b && echo same
	patch -s -R a p
	diff -q a b
	cmp a b
	comm -3 <(sort a) <(sort b)
}

grep_in_it() {
	_some
	grep -r hello $P
	grep -c 1 $P/s/numbers
	grep -l 1999 -r $P
	grep -n 1999 $P/s/*
	grep -q x $P/s/empty || echo none
}

checksums() {
	_some
	cd $P
	find s -type f | sort | xargs md5sum >sums
	md5sum -c sums
	sha256sum s/numbers
	cksum s/numbers
	wc s/numbers
	od -A d -t x1 -j 8000 -N 20 s/numbers
}

shred_and_fallocate() {
	echo secret >$P/a
	shred -n 1 -z -s 100 $P/a
	od -c $P/a
	shred -u $P/a
	fallocate -l 5000 $P/b
	fallocate -n -l 10000 $P/b
	echo start | dd of=$P/b conv=notrunc status=none
	head -c 6000 /dev/zero | tr '\0' z >$P/c
	fallocate -z -o 1000 -l 2000 $P/c
	fallocate -p -o 4000 -l 500 $P/c
	stat -c %s $P/b $P/c
}

sync_tools() {
	echo x >$P/a
	sync $P/a
	sync -d $P/a
	sync -f $P/a
	sync $P/none
	sync $P
}

flock_command() {
	exec 9>$P/lock
	flock 9
	flock -n $P/lock echo no || echo held
	flock -u 9
	flock -n $P/lock echo free
	local i
	for i in 1 2 3 4 5 6; do
		(flock $P/lock sh -c 'n=$(cat '$P'/n 2>/dev/null || echo 0); echo $((n + 1)) >'$P'/n') &
	done
	wait
	cat $P/n
}

zip_and_unzip() {
	_some
	cd $P
	zip -q -r -X x.zip s
	unzip -q x.zip -d out 2>/dev/null || /usr/bin/python3 -m zipfile -e x.zip out
	diff -r s out/s && echo same
	rm -r x.zip out
}

special_files() {
	mkfifo $P/fifo
	(echo through >$P/fifo) &
	cat $P/fifo
	wait
	stat -c %F $P/fifo
	ln -s /dev/null $P/null
	echo x >$P/null
	cat $P/null
}

names_of_all_kinds() {
	cd $P
	local n
	for n in 'a b' $'tab\there' $'new\nline' '*' '-x' '..a' 'a..' $'\xff\xfe' 'ü' "$(printf '%0255d' 0)"; do
		echo "$n" >"./$n" && cat "./$n"
	done
	echo x >"$(printf '%0256d' 0)" 2>/dev/null || echo too long
	: >"./a/" || echo no
	ls -b
	rm -- *
}

perl_and_awk() {
	perl -e 'open(F,"+>",$ARGV[0]) or die; print F "abc\n"x3; seek(F,4,0); print F "XY"; seek(F,0,0); print <F>; close F' $P/a
	perl -i -pe 's/X/Q/' $P/a
	perl -e 'print -s $ARGV[0], "\n"; truncate($ARGV[0], 5); print -s $ARGV[0], "\n"; rename $ARGV[0], "$ARGV[0].n" or die' $P/a
	awk '{print $1 > out; print $1 >> out2} END {close(out); while ((getline l < out) > 0) print "r", l}' out=$P/b out2=$P/c $P/a.n
}
