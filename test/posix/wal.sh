# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# SQLite's write-ahead log, whose index is a map that all processes share.
. "$HERE/common.bash"

sqlite_two_processes_with_a_write_ahead_log() {
	_need sqlite3
	_counting $P/db 'pragma journal_mode=wal'
	(
		echo 'begin; insert into n values(3, 1);'
		sqlite3 -cmd '.timeout 20000' $P/db 'select count(*) from n' >$P/seen
		echo 'commit; pragma wal_checkpoint(truncate);'
	) | sqlite3 -cmd '.timeout 20000' $P/db
	cat $P/seen
	sqlite3 $P/db 'select count(*) from n; pragma journal_mode=delete; pragma integrity_check;'
	ls $P
	rm $P/db
}
