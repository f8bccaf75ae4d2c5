//! fio job files: parser, option rules and fio's own random streams.
