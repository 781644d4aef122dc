# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Walks that cross into a mapped directory on their way, and the tools that make up names or ask for access lists.

_out() { # a tree around a directory that is mapped onto itself where the library is loaded
	out=$(mktemp -d)
	mkdir -p $out/beside $out/mapped
	(
		export PLFS_MAP=$out/mapped
		bash -c 'mkdir $0/mapped/sub; seq 1 100 >$0/mapped/sub/file; echo x >$0/mapped/one; echo y >$0/beside/two' $out
	)
}

_below() { # DIR: all walks of it; what is above has another name in each variant
	BELOW=$1 $BIN/walk everything_below | sed -e "s|$1|DIR|g" -e "s|$(basename $1)|BASE|g" -e 's| /[^ ]*$| ABOVE|'
}

walk_from_above_a_mapping() {
	_out
	PLFS_MAP=$out/mapped _below $out
	rm -r $out
}

walk_through_a_link() {
	_out
	ln -s ../mapped/sub $out/beside/link
	ln -s mapped $out/root
	PLFS_MAP=$out/mapped _below $out/beside
	PLFS_MAP=$out/mapped _below $out/root/sub
	PLFS_MAP=$out/mapped _below $out/root
	rm -r $out
}

walk_of_the_whole_mapping() {
	mkdir $P/d
	seq 1 50 >$P/d/file
	ln -s d/file $P/link
	cd $P
	_below $(dirname $P)
	_below $P
}

access_lists() {
	: >$P/f
	echo text >$P/g
	mkdir $P/d
	setfacl -m u:daemon:rw,g:bin:r $P/f $P/g
	setfacl -d -m u:daemon:rx $P/d
	echo x >$P/d/new
	getfacl -cp $P/f $P/g $P/d $P/d/new
	ls -l $P | cut -c1-11
	cp -a $P/g $P/copy
	getfacl -cp $P/copy
	getfacl -cp $P/g | setfacl --set-file=- $P/d/new
	setfacl -b $P/g
	getfacl -cp $P/g $P/d/new
	cat $P/g $P/copy
}

attributes() {
	echo x >$P/f
	setfattr -n user.a -v 1 $P/f
	setfattr -n user.b -v 2 $P/f
	setfattr -x user.a $P/f
	getfattr -d --absolute-names $P/f
	cp --preserve=xattr $P/f $P/g
	getfattr -d --absolute-names $P/g
	mv $P/f $P/h
	getfattr -d --absolute-names $P/h
}

names_resolved() {
	mkdir -p $P/a/b
	echo x >$P/a/b/f
	ln -s a/b $P/l
	ln -s $P/a $P/abs
	ln -s none $P/dangling
	ln -s loop $P/loop
	for name in a l abs l/f abs/b/../b/f dangling loop none none/x l/f/ ../. l/.. abs/..; do
		for option in -f -e -m; do
			echo "$name $option $(readlink $option $P/$name 2>&1)"
		done
		realpath -s $P/$name
		(cd $P/a/b && realpath --relative-to=. ../../$name 2>&1)
	done
	(cd $P/l && pwd -P && pwd -L && /bin/pwd)
}
