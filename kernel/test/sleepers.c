/* For the test "tenants": `sleepers FILE COUNT`. So many tasks read one sector each and then sleep, each with an io context of
 * its own. Says "asleep" when all have. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0, failed = 0, ready[2];
	char word;

	if (!count || pipe(ready))
		return 2;
	for (int i = 0; i < count; i++) {
		void *sector;
		int file;

		if (fork())
			continue;
		file = open(argv[1], O_RDONLY | O_DIRECT);
		word = posix_memalign(&sector, 4096, 4096) || pread(file, sector, 4096, 4096L * i) != 4096;
		if (write(ready[1], &word, 1) != 1)
			return 1;
		pause();
		return 0;
	}
	for (int i = 0; i < count; i++)
		failed += read(ready[0], &word, 1) != 1 || word;
	printf(failed ? "%d of them failed\n" : "asleep\n", failed);
	fflush(stdout);
	pause();
	return 0;
}
