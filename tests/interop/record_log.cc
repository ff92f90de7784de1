/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record_log FILE: is every record whole? record_log FILE N [bug]: append N records. A log as programs
 * have it that know nothing of PM: a mapped file, msync(), a checksum. The bug: the record and the length
 * that covers it are synced together.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace
{
constexpr std::size_t room = 65536, page = 4096;

struct header {
	std::uint64_t end; /* bytes after the header that hold records */
};
struct record {
	std::uint32_t bytes, sum;
};

std::uint32_t sum_of(const char *at, std::size_t n)
{
	std::uint32_t sum = 2166136261u;
	while (n--)
		sum = (sum ^ static_cast<unsigned char>(*at++)) * 16777619u;
	return sum;
}

class log
{
      public:
	explicit log(const char *path)
	{
		int fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || ftruncate(fd, room))
			throw path;
		at = static_cast<char *>(
			mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
		close(fd);
		if (at == MAP_FAILED)
			throw path;
	}
	~log()
	{
		munmap(at, room);
	}
	log(const log &) = delete;
	log &operator=(const log &) = delete;

	void append(const std::string &text, bool bug)
	{
		std::uint64_t end = head().end;
		record r{static_cast<std::uint32_t>(text.size()),
			 sum_of(text.data(), text.size())};
		std::memcpy(at + page + end, &r, sizeof(r));
		std::memcpy(at + page + end + sizeof(r), text.data(), text.size());
		if (!bug)
			sync();
		head().end = end + (sizeof(r) + text.size() + 63) / 64 * 64;
		sync();
	}

	bool whole() const
	{
		for (std::uint64_t off = 0; off < head().end;) {
			record r;
			std::memcpy(&r, at + page + off, sizeof(r));
			if (r.bytes > room - page - off ||
			    sum_of(at + page + off + sizeof(r), r.bytes) != r.sum)
				return false;
			off += (sizeof(r) + r.bytes + 63) / 64 * 64;
		}
		return true;
	}

      private:
	header &head() const
	{
		return *reinterpret_cast<header *>(at);
	}
	void sync() const
	{
		if (msync(at, room, MS_SYNC))
			throw "msync";
	}
	char *at;
};
} // namespace

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	log l(argv[1]);
	if (argc == 2)
		return l.whole() ? 0 : 1;
	for (int i = 1; i <= std::atoi(argv[2]); i++)
		l.append(std::string(static_cast<std::size_t>(20 + 7 * i),
				     static_cast<char>('a' + i % 26)),
			 argc > 3);
	return 0;
}
