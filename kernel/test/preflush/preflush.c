// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the test "tenants": /dev/preflush. What is written to it goes to the
 * disk of the parameter "disk" as one write with REQ_PREFLUSH for the cgroup of
 * the writing task, as some file systems do for their users. The parameter
 * "nowait" says to send it with REQ_NOWAIT, and without if that is refused, as
 * io_uring does.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

static char *disk = "/dev/nullb0";
module_param(disk, charp, 0444);

static bool nowait;
module_param(nowait, bool, 0644);

static struct file *preflush_disk;

static int preflush_send(struct block_device *bdev, struct page *page, sector_t sector, blk_opf_t flags)
{
	/* It belongs to the cgroup of the running task. */
	struct bio *bio = bio_alloc(bdev, 1, REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH | flags, GFP_KERNEL);
	int error;

	bio->bi_iter.bi_sector = sector;
	__bio_add_page(bio, page, PAGE_SIZE, 0);
	error = submit_bio_wait(bio);
	bio_put(bio);
	return error;
}

static ssize_t preflush_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	struct block_device *bdev = file_bdev(preflush_disk);
	struct page *page;
	int error;

	if (bytes < PAGE_SIZE)
		return -EINVAL;
	page = alloc_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	error = -EFAULT;
	if (copy_from_user(page_address(page), from, PAGE_SIZE))
		goto out;
	if (*at + PAGE_SIZE > bdev_nr_bytes(bdev))
		*at = 0;
	error = preflush_send(bdev, page, *at >> SECTOR_SHIFT, nowait ? REQ_NOWAIT : 0);
	if (error == -EAGAIN)
		error = preflush_send(bdev, page, *at >> SECTOR_SHIFT, 0);
	*at += PAGE_SIZE;
out:
	__free_page(page);
	return error ?: PAGE_SIZE;
}

static const struct file_operations preflush_operations = {
	.owner = THIS_MODULE,
	.write = preflush_write,
};

static struct miscdevice preflush_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "preflush",
	.fops = &preflush_operations,
};

static int __init preflush_init(void)
{
	int error;

	preflush_disk = bdev_file_open_by_path(disk, BLK_OPEN_READ | BLK_OPEN_WRITE, NULL, NULL);
	if (IS_ERR(preflush_disk))
		return PTR_ERR(preflush_disk);
	error = misc_register(&preflush_device);
	if (error)
		fput(preflush_disk);
	return error;
}

static void __exit preflush_exit(void)
{
	misc_deregister(&preflush_device);
	fput(preflush_disk);
}

module_init(preflush_init);
module_exit(preflush_exit);

MODULE_DESCRIPTION("writes with REQ_PREFLUSH for a test");
MODULE_LICENSE("GPL");
