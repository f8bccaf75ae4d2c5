# For nbdsh: each command and each error of the protocol, against an export of 64 MiB that may be written.
import errno


def fails(number, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except nbd.Error as error:
        assert error.errnum == number, (call.__name__, arguments, error.errnum, number)
    else:
        raise AssertionError((call.__name__, arguments, "went well"))


size = h.get_size()
assert size == 64 << 20, size
assert h.get_structured_replies_negotiated()
h.set_strict_mode(0)  # send also what the library would refuse

h.pwrite(b"x" * 1000, 123)
assert h.pread(1002, 122) == b"\0" + b"x" * 1000 + b"\0" or h.pread(1000, 123) == b"x" * 1000
h.pwrite(b"y" * 4096, 8192, nbd.CMD_FLAG_FUA)
h.flush()
h.zero(4096, 8192)
assert h.pread(4096, 8192) == bytes(4096)
h.pwrite(b"z" * 65536, 65536)
h.zero(65536, 65536, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert h.pread(65536, 65536) == bytes(65536)
h.trim(1 << 20, 1 << 20)
h.trim(1 << 20, 1 << 20, nbd.CMD_FLAG_FUA)
big = bytes(range(256)) * (32 << 12)
assert len(big) == 32 << 20
h.pwrite(big, 0)
assert h.pread(32 << 20, 0) == big
chunks = []
h.pread_structured(1 << 20, 512, lambda data, offset, status, error: chunks.append((offset, len(data))), nbd.CMD_FLAG_DF)
assert chunks == [(512, 1 << 20)], chunks

fails(errno.EINVAL, h.pread, 4096, size - 512)
fails(errno.EINVAL, h.pread, 4096, size)
fails(errno.ENOSPC, h.pwrite, b"a" * 4096, size - 512)
fails(errno.ENOSPC, h.zero, 4096, size)
fails(errno.EINVAL, h.trim, 4096, size)
fails(errno.EINVAL, h.pread, 512, 0, 1 << 9)
fails(errno.EINVAL, h.pwrite, b"a" * 512, 0, nbd.CMD_FLAG_DF)
fails(errno.EINVAL, h.cache, 512, 0)
assert h.pread(512, 0) == big[:512]
