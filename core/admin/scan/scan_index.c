/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the node indexes of a container, block by block, record by record.
 */
#include "core/admin/scan/scan_index.h"

#include "core/dropping/node_index.h"
#include "core/backend/names.h"

#define REPORTED_MAX 100 /* damaged blocks of one index that are reported */

static int take_block(struct scan *l, uint32_t index, const uint8_t *p, size_t len,
		      const struct index_block *block)
{
	const char *path = l->indexes[index].path;
	char log_path[CONTAINER_PATH_LEN];
	struct index_cursor cur = { 0 };
	struct index_record rec;
	struct scan_log *log;
	int ret;

	while ((ret = index_block_record(block, &cur, &rec)) > 0)
		;
	if (ret) {
		findings_add(l->found, PLFS_DAMAGED, "index-record", path,
			     (uint64_t)(p - l->indexes[index].buf),
			     "the block at byte %llu has an impossible record",
			     (unsigned long long)(p - l->indexes[index].buf));
		l->indexes[index].nr_damaged++;
		return 0;
	}
	name_log_of_block(path, block, log_path);
	log = scan_log(l, log_path);
	return log ? scan_add_block(l, index, log, p, len, block) : -ENOMEM;
}

/* 0, also if it is unreadable (a repair then leaves it alone); -errno. */
static int read_it(struct scan *l, struct scan_index *idx, struct node_index *file)
{
	int ret = node_index_open(file, l->c, idx->path);

	if (ret == -ENOENT) /* removed after a truncation to 0 */
		return 0;
	if (ret && ret != -EIO)
		return ret;
	idx->buf = file->buf;
	idx->len = file->len;
	if (ret || file->damaged) {
		findings_add(l->found, PLFS_DAMAGED, "index-unreadable", idx->path, 0, "cannot be read: %s",
			     ret ?
			     "the file system reports an error, or it is larger than libplfs makes one" :
			     "a part of it is a hole");
		idx->nr_damaged++;
		idx->untouchable = true;
	}
	return 0;
}

static int scan_node_index(struct scan *l, uint32_t no)
{
	struct scan_index *idx = &l->indexes[no];
	struct node_index file;
	struct index_block block;
	int ret = read_it(l, idx, &file);

	for (size_t pos = 0; pos < idx->len && !ret;) {
		const uint8_t *p = idx->buf + pos;
		size_t left = idx->len - pos, skip = index_block_skip(p, left);
		ssize_t n = index_block_parse(&block, p, left);

		if (n > 0) {
			ret = take_block(l, no, p, (size_t)n, &block);
			skip = (size_t)n;
		} else if (n == -EPROTONOSUPPORT) {
			l->unknown = idx->untouchable = true;
			findings_add(l->found, PLFS_FAILED, "version", idx->path, pos,
				     "another version of libplfs wrote the block at byte %zu", pos);
			break;
		} else if (n != -ENODATA && !index_block_is_torn(p, left)) {
			if (idx->nr_damaged++ < REPORTED_MAX)
				findings_add(l->found, PLFS_DAMAGED, "index-block", idx->path, pos,
					     "the block at byte %zu is damaged: the file cannot be read with "
					     "this index", pos);
		}
		if (n <= 0 && node_index_is_hopeless(&file, p, left))
			break;
		pos += skip;
	}
	return ret;
}

int scan_indexes(struct scan *l)
{
	int ret = 0;

	for (uint32_t i = 0; i < l->nr_indexes && !ret; i++)
		ret = scan_node_index(l, i);
	return ret;
}
