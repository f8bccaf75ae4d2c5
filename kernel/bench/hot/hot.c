// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU's emulator: how often each block of the guest's instructions
 * runs. Whenever the guest runs the instruction that mark.c is made of, all
 * counts so far are written to DIRECTORY/hot.N (N from 0), a line for each block:
 * address in hex, instructions, how often it ran. Programs' blocks of one length
 * are one, at address 0: they lie elsewhere each time.
 *
 *   qemu-system-x86_64 -plugin hot.so,directory=DIRECTORY ...
 *
 * Only what is needed of the plugin interface is declared here (version 1, QEMU
 * 6 to 8), as few distributions have its header.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void (*tb_callback)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*insn_callback)(unsigned int cpu, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_callback callback);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *at, uint64_t add);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, insn_callback callback,
						   enum qemu_plugin_cb_flags flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

struct block {
	uint64_t at, instructions, times;
	struct block *next;
};

#define HEADS 65536
static struct block *heads[HEADS];
static const char *directory = ".";

static struct block *block_of(uint64_t at, uint64_t instructions)
{
	struct block **head = &heads[(at ^ at >> 16) % HEADS], *block;

	for (block = *head; block; block = block->next) {
		if (block->at == at && block->instructions == instructions)
			return block;
	}
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	*block = (struct block) { at, instructions, 0, *head };
	return *head = block;
}

static void write_counts(unsigned int cpu, void *data)
{
	static unsigned int number;
	char path[4096];
	FILE *file;

	(void)cpu, (void)data;
	snprintf(path, sizeof(path), "%s/hot.%u", directory, number++);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		return;
	}
	for (size_t i = 0; i < HEADS; i++) {
		for (struct block *block = heads[i]; block; block = block->next) {
			if (block->times)
				fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->at, block->instructions, block->times);
		}
	}
	fclose(file);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const unsigned char mark[] = { MARK };
	size_t count = qemu_plugin_tb_n_insns(tb);
	uint64_t at = qemu_plugin_tb_vaddr(tb);

	(void)id;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) && !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, write_counts, QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	if (at < UINT64_C(1) << 63)
		at = 0;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block_of(at, count)->times, 1);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "directory=", 10)) {
			directory = strdup(argv[i] + 10);
		} else {
			fprintf(stderr, "hot: '%s' is not directory=DIRECTORY\n", argv[i]);
			return -1;
		}
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
