// SPDX-License-Identifier: GPL-2.0-only
/*
 * For the test "tenants": /dev/preflush. What is written to it goes to the
 * disk of the parameter "disk" as one write with REQ_PREFLUSH for the cgroup of
 * the writing task, as some file systems do for their users. The parameter
 * "nowait" says to send it with REQ_NOWAIT, and without if that is refused, as
 * io_uring does; "thread" to have one kernel thread send all of them, as disks
 * on top of others do.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

static char *disk = "/dev/nullb0";
module_param(disk, charp, 0444);

static bool nowait;
module_param(nowait, bool, 0644);

static bool thread;
module_param(thread, bool, 0644);

static struct file *preflush_disk;
static struct workqueue_struct *preflush_thread;

/* A bio on its way through the thread. */
struct preflush_work {
	struct work_struct work;
	struct bio *bio;
	struct completion done;
};

static void preflush_done(struct bio *bio)
{
	struct preflush_work *way = bio->bi_private;

	complete(&way->done);
}

static void preflush_submit(struct work_struct *work)
{
	submit_bio(container_of(work, struct preflush_work, work)->bio);
}

static int preflush_by_thread(struct bio *bio)
{
	struct preflush_work way = { .bio = bio };

	INIT_WORK_ONSTACK(&way.work, preflush_submit);
	init_completion(&way.done);
	bio->bi_private = &way;
	bio->bi_end_io = preflush_done;
	queue_work(preflush_thread, &way.work);
	flush_work(&way.work);
	wait_for_completion_io(&way.done);
	destroy_work_on_stack(&way.work);
	return blk_status_to_errno(bio->bi_status);
}

static int preflush_send(struct block_device *bdev, struct page *page, sector_t sector, blk_opf_t flags)
{
	/* It belongs to the cgroup of the running task. */
	struct bio *bio = bio_alloc(bdev, 1, REQ_OP_WRITE | REQ_SYNC | REQ_PREFLUSH | flags, GFP_KERNEL);
	int error;

	bio->bi_iter.bi_sector = sector;
	__bio_add_page(bio, page, PAGE_SIZE, 0);
	error = thread ? preflush_by_thread(bio) : submit_bio_wait(bio);
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
	preflush_thread = alloc_ordered_workqueue("preflush", 0);
	error = preflush_thread ? misc_register(&preflush_device) : -ENOMEM;
	if (!error)
		return 0;
	if (preflush_thread)
		destroy_workqueue(preflush_thread);
	fput(preflush_disk);
	return error;
}

static void __exit preflush_exit(void)
{
	misc_deregister(&preflush_device);
	destroy_workqueue(preflush_thread);
	fput(preflush_disk);
}

module_init(preflush_init);
module_exit(preflush_exit);

MODULE_DESCRIPTION("writes with REQ_PREFLUSH for a test");
MODULE_LICENSE("GPL");
