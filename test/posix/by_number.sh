# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Programs that name system calls by their number.
. "$HERE/common.bash"

node_reads_and_writes() {
	_need node
	_not_sanitized
	node - <<'JS'
const fs = require('fs'), p = process.env.P + '/', cp = require('child_process');
fs.writeFileSync(p + 'a', 'sync');
fs.appendFileSync(p + 'a', ' appended');
console.log(fs.readFileSync(p + 'a', 'utf8'), fs.statSync(p + 'a').size);
const fd = fs.openSync(p + 'b', 'w+');
fs.writeSync(fd, 'positions', 5);
fs.ftruncateSync(fd, 10);
console.log(fs.readSync(fd, Buffer.alloc(20), 0, 20, 0), fs.fstatSync(fd).size);
fs.closeSync(fd);
fs.mkdirSync(p + 'd/e', {recursive: true});
fs.copyFileSync(p + 'a', p + 'd/c');
fs.renameSync(p + 'd/c', p + 'd/e/c');
fs.symlinkSync('e/c', p + 'd/l');
console.log(fs.readdirSync(p + 'd', {withFileTypes: true}).map(e => e.name + e.isDirectory()).sort(), fs.realpathSync(p + 'd/l') == p + 'd/e/c');
for (const f of [() => fs.readFileSync(p + 'none'), () => fs.rmdirSync(p + 'd'), () => fs.openSync(p + 'a', 'wx')])
	try { f(); } catch (e) { console.log(e.code); }
(async () => {
	await Promise.all([...Array(20).keys()].map(i => fs.promises.writeFile(p + 'f' + i, 'x'.repeat(i * 1000))));
	console.log((await Promise.all([...Array(20).keys()].map(i => fs.promises.stat(p + 'f' + i)))).map(s => s.size).join());
	const h = await fs.promises.open(p + 'h', 'a+');
	await h.appendFile('handle ');
	await h.writev([Buffer.from('vec'), Buffer.from('tor')]);
	await h.sync();
	console.log(await fs.promises.readFile(p + 'h', 'utf8'));
	await h.close();
	const out = fs.createWriteStream(p + 's');
	for (let i = 0; i < 1000; i++) out.write('chunk ' + i + '\n');
	await new Promise(r => out.end(r));
	let n = 0;
	for await (const c of fs.createReadStream(p + 's', {start: 100, end: 5000})) n += c.length;
	console.log(n);
	console.log(cp.spawnSync('sort', ['-r'], {stdio: [fs.openSync(p + 's'), fs.openSync(p + 'r', 'w'), 2]}).status,
		fs.readFileSync(p + 'r', 'utf8').split('\n')[0]);
	await fs.promises.rm(p + 'd', {recursive: true});
})();
JS
}
