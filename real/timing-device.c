// A file whose every read, write and flush takes an exactly known time, so that a loop device over it is a disk of the running kernel
// whose service times are known. It speaks the raw FUSE protocol and keeps the file in memory.
//
//   timing-device MOUNT-POINT [NAME=VALUE]...
//
//   size_mib=2048     size of the file
//   channels=1        commands served at a time; the rest waits and is served in order of arrival
//   fixed_us=2000     each command takes this,
//   rate_mb_per_s=50  and its bytes at this rate (10^6 bytes a second; 0: no time),
//   near_us=0         and, unless it begins where the channel's last one ended, the time of a seek: near_us
//   far_us=0          for no distance up to far_us for the whole file, linear between
//   flush_us=2000     a flush takes this; it begins when all before it are done, and what comes behind it waits
//   report=FILE       where SIGUSR1 writes, as JSON, what happened since the start or the last SIGUSR2 (which forgets it)
//   log=FILE          a line for each command: arrival, start, end and answer (ns), op, sector, bytes
//
// The end of a command is reckoned from the end of the one before it, never from when that was answered: being late does not add up
// while commands wait. How late answers are is in the report.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CHANNELS_MAX = 256, COMMANDS_MAX = 1024, MESSAGE_BYTES = 1 << 20, LATE_STEPS = 20000, LATE_STEP_NS = 1000 };

typedef enum { READ, WRITE, FLUSH } Kind;

typedef struct {
    uint64_t end, arrival, start, id, at, number;
    uint32_t bytes;
    Kind kind;
} Command;

typedef struct {
    uint64_t free, position; // when it is free, and behind which byte it stands
} Channel;

static struct {
    uint64_t size, channels, fixed, rate_mb, near, far, flush;
    const char *mount_point, *report, *log;
} set = { .size = 2048, .channels = 1, .fixed = 2000, .rate_mb = 50, .flush = 2000 };

static Channel channel[CHANNELS_MAX];
static Command under_way[COMMANDS_MAX]; // a heap, the earliest end first
static unsigned commands;
static uint64_t numbers;
static char *content;
static int fuse;
static FILE *log_file;

static struct {
    uint64_t since, count[3], bytes[3], busy, late[LATE_STEPS], late_max, most;
} seen;

static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what) {
    fprintf(stderr, "timing-device: %s: %s\n", what, strerror(errno));
    exit(1);
}

// ---- the timing ------------------------------------------------------------------------------------------------------------------

static uint64_t seek_ns(const Channel *c, uint64_t at) {
    if (at == c->position || set.far == 0) return 0;
    uint64_t distance = at > c->position ? at - c->position : c->position - at;
    return set.near + (uint64_t)((unsigned __int128)(set.far - set.near) * distance / set.size);
}

static void place_flush(Command *command) {
    for (unsigned i = 0; i < set.channels; i++)
        if (channel[i].free > command->start) command->start = channel[i].free;
    command->end = command->start + set.flush;
    for (unsigned i = 0; i < set.channels; i++) channel[i].free = command->end;
    seen.busy += set.flush * set.channels;
}

static void place(Command *command) {
    command->start = command->arrival;
    if (command->kind == FLUSH) {
        place_flush(command);
        return;
    }
    Channel *first = channel;
    for (unsigned i = 1; i < set.channels; i++)
        if (channel[i].free < first->free) first = channel + i;
    if (first->free > command->start) command->start = first->free;
    uint64_t takes = set.fixed + seek_ns(first, command->at);
    if (set.rate_mb) takes += (uint64_t)command->bytes * 1000 / set.rate_mb;
    command->end = command->start + takes;
    *first = (Channel){ command->end, command->at + command->bytes };
    seen.busy += takes;
}

// ---- the heap of commands under way -----------------------------------------------------------------------------------------------

static int before(const Command *a, const Command *b) { return a->end != b->end ? a->end < b->end : a->number < b->number; }

static void put(Command command) {
    if (commands == COMMANDS_MAX) {
        fprintf(stderr, "timing-device: more than %d commands at a time\n", COMMANDS_MAX);
        exit(1);
    }
    unsigned at = commands++;
    for (unsigned up; at > 0 && before(&command, under_way + (up = (at - 1) / 2)); at = up) under_way[at] = under_way[up];
    under_way[at] = command;
    if (commands > seen.most) seen.most = commands;
}

static Command take(void) {
    Command first = under_way[0], last = under_way[--commands];
    unsigned at = 0;
    for (unsigned down; (down = 2 * at + 1) < commands; at = down) {
        if (down + 1 < commands && before(under_way + down + 1, under_way + down)) down++;
        if (!before(under_way + down, &last)) break;
        under_way[at] = under_way[down];
    }
    under_way[at] = last;
    return first;
}

// ---- the protocol ---------------------------------------------------------------------------------------------------------------

static void answer(uint64_t id, int error, const void *data, size_t bytes) {
    struct fuse_out_header head = { .len = sizeof head + bytes, .error = error, .unique = id };
    struct iovec both[] = { { &head, sizeof head }, { (void *)data, bytes } };
    if (writev(fuse, both, bytes ? 2 : 1) < 0 && errno != ENOENT) fail("answer");
}

static void answer_due(void) {
    for (uint64_t now; commands && under_way[0].end <= (now = clock_ns());) {
        Command c = take();
        struct fuse_write_out written = { .size = c.bytes };
        if (c.kind == READ) answer(c.id, 0, content + c.at, c.bytes);
        else if (c.kind == WRITE) answer(c.id, 0, &written, sizeof written);
        else answer(c.id, 0, NULL, 0);
        uint64_t late = now - c.end, step = late / LATE_STEP_NS;
        seen.late[step < LATE_STEPS ? step : LATE_STEPS - 1]++;
        if (late > seen.late_max) seen.late_max = late;
        if (log_file)
            fprintf(log_file, "%lu,%lu,%lu,%lu,%c,%lu,%u\n", c.arrival, c.start, c.end, now, "RWF"[c.kind], c.at / 512, c.bytes);
    }
}

static void serve(Kind kind, uint64_t id, uint64_t at, uint32_t bytes) {
    if (at > set.size || bytes > set.size - at) {
        answer(id, -EIO, NULL, 0);
        return;
    }
    Command command = { .arrival = clock_ns(), .id = id, .at = at, .bytes = bytes, .kind = kind, .number = numbers++ };
    place(&command);
    seen.count[kind]++;
    seen.bytes[kind] += bytes;
    put(command);
}

static void begin(uint64_t id, const struct fuse_init_in *in) {
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION,
        .minor = in->minor < FUSE_KERNEL_MINOR_VERSION ? in->minor : FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = in->max_readahead,
        .flags = in->flags & (FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_BIG_WRITES | FUSE_MAX_PAGES),
        .max_background = COMMANDS_MAX,
        .congestion_threshold = COMMANDS_MAX,
        .max_write = MESSAGE_BYTES,
        .max_pages = MESSAGE_BYTES / 4096,
        .time_gran = 1,
    };
    answer(id, 0, &out, sizeof out);
}

static void message(char *text) {
    struct fuse_in_header *head = (void *)text;
    void *body = head + 1;
    uint64_t id = head->unique;
    struct fuse_attr_out attributes = { .attr_valid = 3600,
        .attr = { .ino = FUSE_ROOT_ID, .size = set.size, .blocks = set.size / 512, .mode = S_IFREG | 0600, .nlink = 1, .blksize = 4096 } };
    struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES | FOPEN_NOFLUSH };
    switch (head->opcode) {
    case FUSE_INIT: begin(id, body); break;
    case FUSE_GETATTR:
    case FUSE_SETATTR: answer(id, 0, &attributes, sizeof attributes); break;
    case FUSE_OPEN: answer(id, 0, &opened, sizeof opened); break;
    case FUSE_READ: serve(READ, id, ((struct fuse_read_in *)body)->offset, ((struct fuse_read_in *)body)->size); break;
    case FUSE_WRITE: {
        struct fuse_write_in *in = body;
        if (in->offset <= set.size && in->size <= set.size - in->offset) memcpy(content + in->offset, in + 1, in->size);
        serve(WRITE, id, in->offset, in->size);
        break;
    }
    case FUSE_FSYNC: serve(FLUSH, id, 0, 0); break;
    case FUSE_FALLOCATE: // a discard: at once, and nothing is forgotten
    case FUSE_RELEASE:
    case FUSE_FLUSH:
    case FUSE_ACCESS: answer(id, 0, NULL, 0); break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: break;
    default: answer(id, -ENOSYS, NULL, 0);
    }
}

// ---- reports ----------------------------------------------------------------------------------------------------------------------

static double late_us(double share) {
    uint64_t all = 0, sum = 0;
    for (int i = 0; i < LATE_STEPS; i++) all += seen.late[i];
    for (int i = 0; i < LATE_STEPS; i++)
        if ((sum += seen.late[i]) > all * share) return i * (LATE_STEP_NS / 1e3);
    return 0;
}

static void forget(void) {
    memset(&seen, 0, sizeof seen);
    seen.since = clock_ns();
}

static void report(void) {
    if (!set.report) return;
    char part[512];
    snprintf(part, sizeof part, "%s.part", set.report);
    FILE *out = fopen(part, "w");
    if (!out) fail(part);
    double seconds = (clock_ns() - seen.since) / 1e9;
    fprintf(out, "{\"seconds\": %.3f, \"reads\": %lu, \"writes\": %lu, \"flushes\": %lu, \"read_bytes\": %lu, \"write_bytes\": %lu, ", seconds,
        seen.count[READ], seen.count[WRITE], seen.count[FLUSH], seen.bytes[READ], seen.bytes[WRITE]);
    fprintf(out, "\"busy\": %.4f, \"most_at_a_time\": %lu, ", seen.busy / 1e9 / seconds / set.channels, seen.most);
    fprintf(out, "\"late_us\": {\"p50\": %.0f, \"p99\": %.0f, \"p99.9\": %.0f, \"max\": %.0f}}\n", late_us(.5), late_us(.99), late_us(.999),
        seen.late_max / 1e3);
    fclose(out);
    if (rename(part, set.report)) fail(set.report);
    if (log_file) fflush(log_file);
}

static int signalled(int signals) {
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info) return 1;
    if (info.ssi_signo == SIGUSR1) report();
    else if (info.ssi_signo == SIGUSR2) forget();
    else return 0;
    return 1;
}

// ---- the start --------------------------------------------------------------------------------------------------------------------

static void setting(char *text) {
    struct { const char *name; uint64_t *number; const char **text; } known[] = {
        { "size_mib", &set.size, 0 }, { "channels", &set.channels, 0 }, { "fixed_us", &set.fixed, 0 }, { "rate_mb_per_s", &set.rate_mb, 0 },
        { "near_us", &set.near, 0 }, { "far_us", &set.far, 0 }, { "flush_us", &set.flush, 0 }, { "report", 0, &set.report }, { "log", 0, &set.log },
    };
    char *value = strchr(text, '='), *end = "";
    if (value) {
        *value++ = 0;
        for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
            if (strcmp(known[i].name, text)) continue;
            if (known[i].text) *known[i].text = value;
            else *known[i].number = strtoull(value, &end, 10);
            if (!*end && *value && *value != '-') return;
        }
    }
    fprintf(stderr, "timing-device: '%s' is not a setting it takes; the head of timing-device.c lists them\n", text);
    exit(2);
}

static void mount_file(void) {
    int there = open(set.mount_point, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (there < 0) fail(set.mount_point);
    close(there);
    if ((fuse = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0) fail("/dev/fuse");
    char options[160];
    snprintf(options, sizeof options, "fd=%d,rootmode=%o,user_id=0,group_id=0,allow_other,max_read=%d", fuse, S_IFREG | 0600, MESSAGE_BYTES);
    if (mount("timing-device", set.mount_point, "fuse", MS_NODEV | MS_NOSUID, options)) fail("mount");
}

static int set_alarm(int timer, uint64_t at) {
    struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int main(int argc, char **argv) {
    if (argc < 2 || strchr(argv[1], '=')) {
        fprintf(stderr, "usage: timing-device MOUNT-POINT [NAME=VALUE]...\n");
        return 2;
    }
    set.mount_point = argv[1];
    for (int i = 2; i < argc; i++) setting(argv[i]);
    if (set.channels < 1 || set.channels > CHANNELS_MAX || set.size < 1 || set.size > 1 << 20 || (set.far && set.far < set.near)) {
        fprintf(stderr, "timing-device: channels must be 1 to %d, size_mib 1 to 1048576, far_us 0 or at least near_us\n", CHANNELS_MAX);
        return 2;
    }
    set.size <<= 20;
    set.fixed *= 1000, set.near *= 1000, set.far *= 1000, set.flush *= 1000;
    content = mmap(NULL, set.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *text = malloc(MESSAGE_BYTES + 8192);
    if (content == MAP_FAILED || !text) fail("memory");
    if (set.log && !(log_file = fopen(set.log, "w"))) fail(set.log);
    if (log_file) fprintf(log_file, "arrival_ns,start_ns,end_ns,answer_ns,op,sector,bytes\n");
    mount_file();
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1), sigaddset(&mask, SIGUSR2), sigaddset(&mask, SIGTERM), sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    int signals = signalfd(-1, &mask, SFD_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (signals < 0 || timer < 0) fail("timer");
    prctl(PR_SET_IO_FLUSHER, 1); // memory it needs is not got by writing to its own file
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 60 })) fail("real-time priority");
    forget();
    for (;;) {
        answer_due();
        set_alarm(timer, commands ? under_way[0].end : 0);
        struct pollfd on[] = { { fuse, POLLIN, 0 }, { timer, POLLIN, 0 }, { signals, POLLIN, 0 } };
        if (poll(on, 3, -1) < 0 && errno != EINTR) fail("poll");
        if (on[1].revents) {
            uint64_t times;
            if (read(timer, &times, sizeof times) < 0 && errno != EAGAIN) fail("timer");
        }
        if (on[2].revents && !signalled(signals)) break;
        for (ssize_t bytes; (bytes = read(fuse, text, MESSAGE_BYTES + 8192)) > 0; answer_due()) message(text);
        if (errno == ENODEV) break; // unmounted
    }
    umount2(set.mount_point, MNT_DETACH);
    return 0;
}
