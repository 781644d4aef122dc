# SPDX-License-Identifier: BSD-3-Clause
# Copies of logs in other backends (mirror=), sourced by run: the helper that makes them, other backends that are full, slow or
# gone, and the command. test/unit/file/mirror.c has the damage.

other=$work/other

copiers() { pgrep -f "^plfs drain --copies $back " || pgrep -f "^plfs drain --copies $back\$" || :; }
no_copier() { [ -z "$(copiers)" ]; }
copies() { find "$other" -name 'data.*' ! -name '*.tmp.*' | wc -l; }
has_copies() { [ "$(copies)" = "$1" ]; }
lose_logs() { find "$back/.plfs" -name 'data.*' -delete; }

copies_setup() {
	rm -rf "$other"
	mkdir -p "$other"
	map="/plfs=$back,$other{small=0,mirror=2}"
}

all_copied() {
	until_so "there are $1 copies" has_copies "$1"
	until_so "the helper has ended" no_copier
	[ -z "$(find "$back/.plfs" -name 'queue.*')" ]
}

copies_made() { # by the helper; read under a mapping without mirror= when the logs are lost; healed
	local map i
	copies_setup
	for i in 1 2; do
		head -c $((i * 3000000)) /dev/urandom >"$work/plain/c$i"
		"$plfs" run -m "$map" cp "$work/plain/c$i" /plfs/
		all_copied "$i"
	done
	"$plfs" drain -m "$map" "$back/c1" "$back/c2" | tee "$work/out"
	! grep -q copied "$work/out" || return 1
	lose_logs
	for i in 1 2; do "$plfs" run -m "/plfs=$back" cmp "$work/plain/c$i" "/plfs/c$i" 2>"$work/err"; done
	cat "$work/err"
	[ "$(grep -c "the data log is missing: its copy in $other/plfs\.[0-9]*/copies\.[0-9a-f]* is read instead; plfs repair heals it" "$work/err")" = 1 ]
	! "$plfs" check "$back/c1" >"$work/out" || return 1
	cat "$work/out"
	grep 'is whole: nothing of it is lost, and plfs repair heals it' "$work/out"
	"$plfs" repair "$back/c1" "$back/c2"
	"$plfs" check "$back/c1" "$back/c2"
	rm -r "$other"
	for i in 1 2; do "$plfs" run -m "$map" cmp "$work/plain/c$i" "/plfs/c$i"; done
}

copies_of_a_cut_log() { # a whole copy is not replaced by less
	local map len
	copies_setup
	map="/plfs=$back,$other{small=0,mirror=2,drain=none}"
	head -c 1000000 /dev/urandom >"$work/plain/u"
	"$plfs" run -m "$map" cp "$work/plain/u" /plfs/u
	"$plfs" drain -m "$map" "$back/u"
	for len in 65536 60000 4096 4095 0; do
		find "$back/.plfs" -name 'data.*' -exec truncate -s $len {} +
		"$plfs" drain -m "$map" "$back/u" || :
		"$plfs" run -m "$map" cmp "$work/plain/u" /plfs/u
		"$plfs" repair "$back/u"
		"$plfs" check "$back/u"
		[ "$(find "$back/.plfs" -name 'data.*' -size +1000000c | wc -l)" = 1 ]
	done
}

copies_of_near() { # logs in a place are copied when they have come home, by the helpers and by hand
	local map drain
	for drain in helper helper,rate=4M none; do
		copies_setup
		near_setup
		map="/plfs=$back,$other{small=0,near=$near,mirror=2,drain=$drain}"
		head -c 6000000 /dev/urandom >"$work/plain/n"
		# shellcheck disable=SC2016
		"$plfs" run -m "$map" sh -c 'for i in 0 1 2; do dd if="$0" of=/plfs/n bs=2000000 count=1 skip=$i seek=$i conv=notrunc status=none & done; wait' "$work/plain/n"
		case $drain in *rate*) # the copier waits for the logs
			catch_helper
			sleep 2
			kill -CONT "$helper" ;;
		esac
		[ $drain != none ] || "$plfs" drain -m "$map" "$back/n" | grep '3 logs moved home'
		all_copied 3
		[ "$(near_logs)" = 0 ]
		lose_logs
		"$plfs" run -m "$map" cmp "$work/plain/n" /plfs/n
		"$plfs" repair "$back/n"
		"$plfs" check "$back/n"
		"$plfs" run -m "$map" rm /plfs/n
		[ "$(copies)" = 0 ]
	done
}

copies_of_a_job() { # eight processes close one file
	local map i
	copies_setup
	head -c 8000000 /dev/urandom >"$work/plain/j"
	# shellcheck disable=SC2016
	"$plfs" run -m "$map" sh -c 'for i in 0 1 2 3 4 5 6 7; do dd if="$0" of=/plfs/j bs=1000000 count=1 skip=$i seek=$i conv=notrunc status=none & done; wait' "$work/plain/j"
	all_copied 8
	lose_logs
	"$plfs" run -m "$map" cmp "$work/plain/j" /plfs/j
}

copies_wait_for_nobody() { # a copier that hangs, and is killed: programs go on, and the next one makes all copies
	local map i
	copies_setup
	head -c 3000000 /dev/urandom >"$work/plain/w"
	"$plfs" run -m "$map" cp "$work/plain/w" /plfs/w1
	until_so "there is a copier" eval '! no_copier'
	helper=$(copiers | head -n 1)
	kill -STOP "$helper"
	for i in 2 3; do timeout 60 "$plfs" run -m "$map" cp "$work/plain/w" "/plfs/w$i"; done
	for i in 1 2 3; do "$plfs" run -m "$map" cmp "$work/plain/w" "/plfs/w$i"; done
	[ "$(copies)" -lt 3 ]
	kill -KILL "$helper"
	until_so "it has gone" no_copier
	"$plfs" run -m "$map" cp "$work/plain/w" /plfs/w4
	all_copied 4
}

copies_missing_backend() { # stops no program; drain says what is left, and goes on when it is there
	local map rc=0
	copies_setup
	rmdir "$other"
	map="/plfs=$back,$other{small=0,mirror=2,drain=none}"
	head -c 300000 /dev/urandom >"$work/plain/m"
	"$plfs" run -m "$map" cp "$work/plain/m" /plfs/m
	"$plfs" run -m "$map" cmp "$work/plain/m" /plfs/m
	"$plfs" drain -m "$map" "$back/m" 2>"$work/err" || rc=$?
	cat "$work/err"
	[ $rc = 75 ]
	grep "no copy in $other: the backend is not there" "$work/err"
	mkdir "$other"
	"$plfs" drain -m "$map" "$back/m" | tee "$work/out"
	grep '^1 logs copied to other backends' "$work/out"
	[ "$(copies)" = 1 ]
}

copies_of_little() { # of many logs with copies not one is made that has none
	local map
	copies_setup
	map="/plfs=$back,$other{small=0,mirror=2,drain=none}"
	"$plfs" run -m "$map" sh -c 'for i in $(seq 130); do /bin/echo $i >>/plfs/c; done'
	[ "$(find "$back" -name 'data.*' | wc -l)" = 130 ]
	"$plfs" run -m "$map" cat /plfs/c | cmp - <(seq 130)
}

copies_without_room() { # one line, 75, nothing lost; with room it goes on
	local map rc=0
	copies_setup
	map="/plfs=$back,$other{small=0,mirror=2,drain=none}"
	mount -t tmpfs -o size=2m none "$other" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$other"' EXIT
	head -c 3000000 /dev/urandom >"$work/plain/r"
	"$plfs" run -m "$map" cp "$work/plain/r" /plfs/r
	"$plfs" drain -m "$map" "$back/r" 2>"$work/err" || rc=$?
	cat "$work/err"
	[ $rc = 75 ]
	[ "$(grep -c "no copy in $other: No space left on device" "$work/err")" = 1 ]
	[ -z "$(find "$other" -name 'data.*')" ]
	"$plfs" run -m "$map" cmp "$work/plain/r" /plfs/r
	"$plfs" check "$back/r"
	mount -o remount,size=20m "$other"
	"$plfs" drain -m "$map" "$back/r"
	lose_logs
	"$plfs" run -m "$map" cmp "$work/plain/r" /plfs/r
	umount -l "$other"
	trap - EXIT
}

copies_collected() { # of a file that was removed without the library
	local map
	copies_setup
	head -c 300000 /dev/urandom >"$work/plain/g"
	"$plfs" run -m "$map" cp "$work/plain/g" /plfs/g
	"$plfs" run -m "$map" cp "$work/plain/g" /plfs/kept
	all_copied 2
	rm "$back/g"
	"$plfs" gc -a 0 "$back"
	"$plfs" gc --places -a 0 "$other" | tee "$work/out"
	grep '1 containers of files that are gone removed' "$work/out"
	[ "$(copies)" = 1 ]
	"$plfs" run -m "$map" rm /plfs/kept
	[ "$(copies)" = 0 ]
}

copies_of_a_copied_backend() { # cp -a of home: what is removed there takes nothing from the original
	local map second=$work/second
	copies_setup
	rm -rf "$second"
	head -c 300000 /dev/urandom >"$work/plain/b"
	"$plfs" run -m "$map" cp "$work/plain/b" /plfs/b
	all_copied 1
	cp -a "$back" "$second"
	"$plfs" repair -r "$second"
	"$plfs" run -m "/plfs=$second" cmp "$work/plain/b" /plfs/b
	"$plfs" run -m "/plfs=$second" sh -c 'echo x >/plfs/b; rm /plfs/b'
	[ "$(copies)" = 1 ]
	lose_logs
	"$plfs" run -m "$map" cmp "$work/plain/b" /plfs/b
	mv "$back" "$back.moved"
	"$plfs" run -m "/plfs=$back.moved" rm /plfs/b
	mv "$back.moved" "$back"
	[ "$(copies)" = 0 ]
}

copies_take_turns() { # with a drain that has the one token; the helper is told of writers= and rate=
	local map slow rc=0
	slow_drain
	copies_setup
	"$plfs" run -m "/plfs=$back,$other{small=0,mirror=2,drain=none}" cp "$work/plain/slow" /plfs/turn
	map="/plfs=$back,$other{small=0,mirror=2,writers=1}"
	wrong 75 'not all is in the backend' "$plfs" drain -q -m "$map" --wait --timeout=1 "$back/turn"
	has_copies 0
	kill -KILL $slow
	wait $slow || rc=$?
	[ $rc = 137 ]
	"$plfs" drain -m "$map" "$back/turn" | tee "$work/out"
	grep '^1 logs copied to other backends' "$work/out"
	map="/plfs=$back,$other{small=0,mirror=2,writers=3,rate=200M}"
	"$plfs" run -m "$map" sh -c 'echo x >/plfs/x'
	until_so "there is a copier" eval '! no_copier'
	helper=$(copiers | head -n 1)
	tr '\0' ' ' <"/proc/$helper/cmdline" | grep -e ' --rate=209715200 --writers=3 --map /plfs='
	all_copied 2
}

spoil() { # LOG: one byte of the data
	printf 'X' | dd of="$1" bs=1 seek=165536 conv=notrunc status=none
}

copies_beside_staged() { # of home, the staged copy and that in the other backend any one has the bytes
	local map log
	near_setup
	copies_setup
	map="/plfs=$back,$other{small=0,mirror=2,near=$near,drain=none}"
	head -c 300000 /dev/zero >"$work/plain/t"
	"$plfs" run -m "$map" cp "$work/plain/t" /plfs/t
	"$plfs" drain -m "$map" "$back/t" | tee "$work/out"
	grep '^1 logs moved home' "$work/out"
	has_copies 1
	"$plfs" stage -m "$map" "$back/t"
	[ "$(near_logs)" = 1 ]
	spoil "$(find "$back/.plfs" -name 'data.*')"
	"$plfs" run -m "$map" cmp "$work/plain/t" /plfs/t 2>"$work/err"
	[ ! -s "$work/err" ]
	spoil "$(find "$near" -name 'data.*')"
	"$plfs" run -m "$map" cmp "$work/plain/t" /plfs/t 2>"$work/err"
	grep "its copy in $other/.* is read instead" "$work/err"
	log=$(find "$other" -name 'data.*')
	spoil "$log"
	! "$plfs" run -m "$map" cmp "$work/plain/t" /plfs/t || return 1
	printf '\0' | dd of="$log" bs=1 seek=165536 conv=notrunc status=none
	lose_logs
	"$plfs" run -m "$map" cmp "$work/plain/t" /plfs/t
	"$plfs" repair -m "$map" "$back/t"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/t" /plfs/t
}
