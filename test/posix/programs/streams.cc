// SPDX-License-Identifier: BSD-3-Clause
// C++ streams and std::filesystem in the directory $P. libstdc++ calls read and write, not the C library's stdio, and
// walks directories by openat.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;
static fs::path root;

static std::string all(const fs::path &p)
{
	std::ifstream in(p, std::ios::binary);
	return {std::istreambuf_iterator<char>(in), {}};
}

static void modes()
{
	using I = std::ios;
	const std::pair<const char *, I::openmode> modes[] = {
		{"in", I::in}, {"out", I::out}, {"in", I::in}, {"in|out", I::in | I::out}, {"app", I::app}, {"in|app", I::in | I::app},
		{"out|trunc", I::out | I::trunc}, {"ate", I::in | I::out | I::ate}, {"in|out|trunc", I::in | I::out | I::trunc}};

	for (auto [name, mode] : modes) {
		std::fstream f(root / "f", mode);
		std::string word;
		std::cout << name << (f ? " opens" : " fails") << " at " << f.tellg();
		f << "text " << 42 << '\n' << std::flush;
		std::cout << " writes " << f.good();
		f.clear();
		f.seekg(0);
		f >> word;
		std::cout << " reads " << word << '\n';
	}
	std::cout << all(root / "f");
}

static void positions()
{
	std::fstream f(root / "p", std::ios::in | std::ios::out | std::ios::trunc | std::ios::binary);
	std::vector<char> big(100000, 'b');
	std::string line;
	char buf[10];

	f.write(big.data(), 100000);
	f.seekp(50000).write("middle", 6);
	f.seekg(49998).read(buf, 10);
	std::cout.write(buf, 10) << ' ' << f.tellg() << '\n';
	f.seekp(0, std::ios::end);
	f << "\nline one\nline two";
	f.seekg(-18, std::ios::end);
	while (std::getline(f, line))
		std::cout << '[' << line << ']';
	std::cout << f.eof() << f.fail() << '\n';
	f.clear();
	f.seekg(3);
	f.putback('x').putback('y');
	std::cout << char(f.get()) << char(f.peek()) << f.rdbuf()->in_avail() / 100000 << '\n';
	f.close();
	std::ofstream none(root / "no" / "file");
	std::cout << none.is_open() << fs::file_size(root / "p") << '\n';
	std::wofstream(root / "w") << L"wide " << 7 << std::endl;
	std::ofstream unbuffered;
	unbuffered.rdbuf()->pubsetbuf(nullptr, 0);
	unbuffered.open(root / "u");
	unbuffered << 'a' << 'b';
	std::cout << all(root / "u") << fs::file_size(root / "w") << '\n';
	auto *old = std::cout.rdbuf(unbuffered.rdbuf());
	std::cout << "redirected";
	std::cout.rdbuf(old);
	std::cout << all(root / "u") << '\n';
}

static void filesystem()
{
	std::error_code ec;
	std::vector<std::string> found;

	fs::create_directories(root / "d/e/g");
	std::ofstream(root / "d/f") << std::string(70000, 'f');
	fs::copy(root / "d", root / "c", fs::copy_options::recursive);
	fs::copy_file(root / "d/f", root / "d/h");
	fs::copy_file(root / "d/f", root / "d/h", ec);
	std::cout << ec.message() << '\n';
	fs::copy_file(root / "u", root / "d/h", fs::copy_options::overwrite_existing);
	fs::create_symlink("f", root / "d/s");
	fs::create_hard_link(root / "d/f", root / "d/l");
	fs::resize_file(root / "d/h", 5);
	fs::rename(root / "d/h", root / "d/r");
	fs::permissions(root / "d/r", fs::perms::owner_all);
	fs::last_write_time(root / "d/r", fs::file_time_type{});
	for (auto &e : fs::recursive_directory_iterator(root)) {
		std::ostringstream s;
		s << fs::relative(e.path(), root).string() << (e.is_symlink() ? " link" : e.is_directory() ? " dir" : " file ");
		if (e.is_regular_file())
			s << e.file_size() << ' ' << e.hard_link_count();
		found.push_back(s.str());
	}
	std::sort(found.begin(), found.end());
	for (auto &s : found)
		std::cout << s << '\n';
	std::cout << fs::equivalent(root / "d/f", root / "d/s") << (fs::canonical(root / "d/../d/s") == root / "d/f")
		  << fs::read_symlink(root / "d/s") << fs::exists(root / "none") << fs::is_empty(root / "d/e/g")
		  << (fs::space(root).capacity > 0) << int(fs::status(root / "d/r").permissions()) << '\n';
	fs::current_path(root / "d");
	std::cout << (fs::current_path() == root / "d") << all("f").size() << (fs::absolute("f") == root / "d/f") << '\n';
	fs::current_path("/");
	std::cout << fs::remove_all(root / "c") << fs::remove(root / "none") << '\n';
	for (auto bad : {"none", "d"}) {
		std::cout << (fs::file_size(root / bad, ec) == ~0UL) << ec.message() << '\n';
	}
}

int main()
{
	root = std::getenv("P");
	modes();
	positions();
	filesystem();
	std::ofstream late(root / "late"); // flushed by its destructor
	late << "at the end";
	static std::ofstream later(root / "later"); // after main, by exit
	later << "at the very end";
	return 0;
}
