/* Make an export of an NBD server a block device: `attach SOCKET /dev/nbd0`. Returns when the device is there; the connection stays. */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <linux/nbd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define OPTION_MAGIC	0x49484156454f5054ull	/* "IHAVEOPT" */
#define EXPORT_NAME	1
#define NO_ZEROES	2
#define NEW_STYLE	1

static void must(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static void take(int fd, void *to, size_t bytes)
{
	must(recv(fd, to, bytes, MSG_WAITALL) == (ssize_t)bytes, "attach: the server's answer");
}

/* The handshake of NBD's doc/proto.md, for the export without a name: its size, and what it can do. */
static uint64_t agree(int fd, uint16_t *can)
{
	struct { uint64_t hello, magic; uint16_t flags; } __attribute__((packed)) server;
	struct { uint32_t flags; uint64_t magic; uint32_t option, length; } __attribute__((packed)) client = {
		htonl(NEW_STYLE | NO_ZEROES), htobe64(OPTION_MAGIC), htonl(EXPORT_NAME), 0,
	};
	struct { uint64_t size; uint16_t flags; } __attribute__((packed)) export;

	take(fd, &server, sizeof(server));
	must(be64toh(server.magic) == OPTION_MAGIC && ntohs(server.flags) & NO_ZEROES, "attach: not a server of the new style");
	must(write(fd, &client, sizeof(client)) == sizeof(client), "attach: write");
	take(fd, &export, sizeof(export));
	*can = ntohs(export.flags);
	return be64toh(export.size);
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd, disk;
	uint64_t size;
	uint16_t can;

	if (argc != 3) {
		fprintf(stderr, "attach SOCKET DEVICE\n");
		return 2;
	}
	strncpy(at.sun_path, argv[1], sizeof(at.sun_path) - 1);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	must(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)), argv[1]);
	size = agree(fd, &can);
	disk = open(argv[2], O_RDWR);
	must(disk >= 0, argv[2]);
	must(!ioctl(disk, NBD_SET_BLKSIZE, 4096ul) && !ioctl(disk, NBD_SET_SIZE_BLOCKS, (unsigned long)(size / 4096)) &&
	     !ioctl(disk, NBD_SET_FLAGS, (unsigned long)can) && !ioctl(disk, NBD_SET_SOCK, fd), "attach: ioctl");
	if (fork())
		return 0;
	setsid();
	must(!ioctl(disk, NBD_DO_IT), "attach: NBD_DO_IT");
	return 0;
}
