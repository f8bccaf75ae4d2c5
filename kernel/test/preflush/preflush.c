// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the test "tenants": /dev/preflush. What is written to it goes to the
 * disk of the parameter "disk" as one write with REQ_PREFLUSH, sent by the
 * writing task for its cgroup, as some file systems do for their users.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

static char *disk = "/dev/nullb0";
module_param(disk, charp, 0444);

static struct file *preflush_disk;

static ssize_t preflush_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	struct block_device *bdev = file_bdev(preflush_disk);
	struct page *page;
	struct bio *bio;
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
	/* It belongs to the cgroup of the running task. */
	bio = bio_alloc(bdev, 1, REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH, GFP_KERNEL);
	bio->bi_iter.bi_sector = *at >> SECTOR_SHIFT;
	__bio_add_page(bio, page, PAGE_SIZE, 0);
	error = submit_bio_wait(bio);
	bio_put(bio);
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
