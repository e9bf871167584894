#!/usr/bin/env python3
"""Prints a tapelog log as `tapelog consume LOG -J` does.

Written from man/tapelog-format.5 alone, to show that the page is enough. Needs nothing
but Python; for Zstandard also the `zstd` program or the `zstandard` module.

    reader.py LOG

Exit status: 0 done, 1 needs a newer reader, 4 damage, 7 a batch too large,
77 after SKIPPED on stderr: the log holds Zstandard and nothing here can inflate it.
"""

import base64
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

MAGIC = b"\xf5tlb"
HEADER = struct.Struct("<4s4B QIIQqQ IIII")
LINES, COLUMNS, GAP = 1, 2, 3
NONE, LZ4, ZSTD = 0, 1, 2
KEYS, HEADERS, TIMES, GAPS = 1, 2, 4, 8
MAX_BATCH, MAX_SINGLE = 4 << 20, (64 << 20) + 4096
MAX_OFFSET = 2**63 - 1


class Bad(Exception):
    """No good batch stands here: torn or damaged, the surroundings decide."""


class Stop(Exception):
    """The reading ends with this exit status."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def damage(why):
    return Stop(4, why)


# --- small files ---------------------------------------------------------------------


def checked_json(line):
    """What a line of JSON with a checksum says; None if it is not good."""
    found = re.fullmatch(rb'(\{.*),"crc":"([0-9a-f]{8})"\} *\n', line, re.DOTALL)
    if not found or zlib.crc32(found[1]) != int(found[2], 16):
        return None
    return json.loads(found[1] + b"}")


def two_slots(path, log_id):
    """The state in a two-slot file; None if that is missing."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    if len(content) != 8192:
        raise damage(f"{path} is not 8192 bytes long")
    good = [state for state in map(checked_json, (content[:4096], content[4096:])) if state]
    if not good:
        raise damage(f"{path} has no good slot")
    state = max(good, key=lambda state: state["seq"])
    if state["log"] != log_id:
        raise damage(f"{path} belongs to another log")
    return state


# --- numbers and bytes ---------------------------------------------------------------


class Cursor:
    """Takes things off the front of a body; ValueError where they are not whole."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def take(self, length):
        if length > len(self.content) - self.at:
            raise ValueError("bytes are missing")
        self.at += length
        return self.content[self.at - length : self.at]

    def varint(self):
        number = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if number >= 1 << 64:
                    break
                return number
        raise ValueError("a varint is too long")

    def signed(self):
        folded = self.varint()
        return (folded >> 1) ^ -(folded & 1)

    def is_done(self):
        return self.at == len(self.content)


def as_i64(number):
    return (number + 2**63) % 2**64 - 2**63


# --- codecs --------------------------------------------------------------------------


def inflate_lz4(block, raw_length):
    source, out = Cursor(block), bytearray()

    def length(nibble):
        total = nibble
        while nibble == 15:
            byte = source.take(1)[0]
            total += byte
            if byte != 255:
                break
        return total

    while True:
        token = source.take(1)[0]
        out += source.take(length(token >> 4))
        if source.is_done():
            return bytes(out)
        distance = int.from_bytes(source.take(2), "little")
        count = length(token & 15) + 4
        if not 0 < distance <= len(out) or len(out) + count > raw_length:
            raise ValueError("an LZ4 match reaches outside")
        for _ in range(count):
            out.append(out[-distance])


def inflate_zstd(frame, raw_length):
    try:
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(frame) as reader:
            return reader.read(raw_length + 1)
    except ImportError:
        pass
    with tempfile.TemporaryFile() as file:
        file.write(frame)
        file.seek(0)
        pipes = {"stdin": file, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        try:
            program = subprocess.Popen(["zstd", "-dc"], **pipes)
        except FileNotFoundError:
            raise Stop(77, "SKIPPED zstd: no zstd program, no zstandard module") from None
        with program:
            raw = program.stdout.read(raw_length + 1)
            program.kill()
    return raw


def inflate(header, stored):
    if header["codec"] == NONE:
        raw = stored
    elif header["codec"] == LZ4:
        raw = inflate_lz4(stored, header["raw"])
    else:
        raw = inflate_zstd(stored, header["raw"])
    if len(raw) != header["raw"]:
        raise ValueError("the body does not inflate to its raw length")
    return raw


# --- batches -------------------------------------------------------------------------


def header_at(content, position, segment, log_id):
    """The header at a position, checked, but for the base offset expected there."""
    head = content[position : position + 64]
    if len(head) < 64:
        raise Bad("the file ends inside a header")
    fields = HEADER.unpack(head)
    magic, version, layout, codec, flags, base, delta, records, synced, time = fields[:10]
    found_id, stored, raw, body_crc, crc = fields[10:]
    if magic != MAGIC:
        raise Bad("no batch begins here")
    if crc != zlib.crc32(head[:60] + struct.pack("<QQ", segment, position)) or found_id != log_id:
        raise Bad("the header's checksum is wrong")
    kinds = (1, 2) if layout == GAP else (NONE, LZ4, ZSTD)
    if version != 1 or layout not in (LINES, COLUMNS, GAP) or codec not in kinds or flags != 0:
        raise Stop(1, "a newer tapelog wrote this")
    possible = 1 <= delta and base + delta <= MAX_OFFSET and records <= delta and synced <= base
    if not possible or (records == 0) != (layout == GAP):
        raise Bad("the header's numbers can't be")
    if max(stored, raw) > (MAX_BATCH if records > 1 else MAX_SINGLE):
        raise Bad(Stop(7, f"the batch at offset {base} is too large"))
    if layout == GAP:
        codec = NONE
    if codec == NONE and stored != raw or layout == GAP and stored:
        raise Bad("the header's lengths can't be")
    return {
        "layout": layout, "codec": codec, "base": base, "next": base + delta, "records": records,
        "synced": synced, "time": time, "stored": stored, "raw": raw, "body_crc": body_crc,
    }  # fmt: skip


def batch_at(content, position, segment, log_id, expected):
    """The header and the stored body of the good batch at a position."""
    header = header_at(content, position, segment, log_id)
    if header["base"] != expected:
        raise Bad(f"a batch at offset {header['base']} stands here")
    stored = content[position + 64 : position + 64 + header["stored"]]
    if len(stored) < header["stored"]:
        raise Bad("the file ends inside a batch")
    if zlib.crc32(stored) != header["body_crc"]:
        raise Bad("the checksum of the records is wrong")
    return header, stored


# --- records -------------------------------------------------------------------------


def line_records(header, raw):
    lines = raw.split(b"\n")
    if lines.pop() != b"" or len(lines) != header["records"]:
        raise ValueError("the lines are not as many as the records")
    for offset, value in enumerate(lines, header["base"]):
        yield offset, None, [], None, value


def column_records(header, raw):
    body, count = Cursor(raw), header["records"]
    present = body.varint()
    if present > 15:
        raise Stop(1, "a newer tapelog wrote this")

    def column(flag, read):
        return [read() for _ in range(count)] if present & flag else [0] * count

    last_time = 0

    def own_time():
        nonlocal last_time
        has = body.take(1)[0]
        if has > 1:
            raise ValueError("a time is neither there nor not")
        if has == 0:
            return None
        last_time = as_i64(last_time + body.signed())
        return last_time

    value_lengths = [body.varint() for _ in range(count)]
    gaps = column(GAPS, body.varint)
    times = column(TIMES, own_time) if present & TIMES else [None] * count
    key_lengths = column(KEYS, body.varint)
    header_lengths = column(HEADERS, body.varint)
    keys = [body.take(length - 1) if length else None for length in key_lengths]
    values = [take_value(body, length) for length in value_lengths]
    headers = [headers_in(body.take(length)) for length in header_lengths]
    if not body.is_done():
        raise ValueError("bytes are left over")
    offset = header["base"]
    for gap, *record in zip(gaps, keys, headers, times, values):
        offset += gap
        if offset >= header["next"]:
            raise ValueError("a record lies beyond the next offset")
        yield offset, *record
        offset += 1


def take_value(body, length):
    if length == 0:
        return None
    if not (value := body.take(length)).endswith(b"\n"):
        raise ValueError("a value has no newline behind it")
    return value[:-1]


def headers_in(block):
    cursor, pairs = Cursor(block), []
    while not cursor.is_done():
        if (length := cursor.varint()) == 0:
            raise ValueError("a header has no name")
        name = cursor.take(length - 1)
        length = cursor.varint()
        pairs += [name, cursor.take(length - 1) if length else None]
    return pairs


def records_of(header, stored):
    """Offset, key, headers, own time and value of each record, all of them checked."""
    if header["layout"] == GAP:
        if header["codec"] or header["raw"]:
            raise ValueError("a gap has a body")
        return []
    raw = inflate(header, stored)
    read = line_records if header["layout"] == LINES else column_records
    return list(read(header, raw))


# --- the log -------------------------------------------------------------------------


class Log:
    def __init__(self, path):
        self.path = path
        with open(self.file("log.json"), "rb") as file:
            settings = checked_json(file.read())
        if settings is None:
            raise damage("log.json's checksum is wrong")
        if settings["format"] > 1:
            raise Stop(1, "a newer tapelog wrote this")
        self.id = settings["id"]
        self.number = int(self.id, 16)

    def file(self, name):
        return os.path.join(self.path, name)

    def bases(self):
        names = os.listdir(self.path)
        return sorted(int(name[:20]) for name in names if re.fullmatch(r"[0-9]{20}\.log", name))

    def next_bases(self, base):
        return [other for other in self.bases() if other > base]

    def content(self, base):
        with open(self.file(f"{base:020}.log"), "rb") as file:
            return file.read()

    def start(self):
        state = two_slots(self.file("start"), self.id)
        return state["start"] if state else min(self.bases(), default=0)

    def durable(self):
        state = two_slots(self.file("end"), self.id)
        return state["durable"]["offset"] if state else max(self.bases(), default=0)

    def records(self):
        """All records, batch by batch: the header and its records."""
        start = self.start()
        base = max((base for base in self.bases() if base <= start), default=None)
        if base is None:
            self.judge(start, start, b"", 0, "the segment is missing")
            return
        content, position, expected = self.content(base), 0, base
        while True:
            if position < len(content):
                try:
                    header, stored = batch_at(content, position, base, self.number, expected)
                except Bad as bad:
                    content = self.looked_at_again(base, position, expected, content, bad)
                    if content is None:
                        return
                    continue
                above = min(self.next_bases(base), default=MAX_OFFSET)
                if header["next"] > above:
                    raise damage(f"{above:020}.log begins amid a batch of {base:020}.log")
                try:
                    records = records_of(header, stored)
                except ValueError as error:
                    raise damage(f"{base:020}.log at byte {position}: {error}") from None
                yield header["time"], [record for record in records if record[0] >= start]
                position, expected = position + 64 + header["stored"], header["next"]
            elif expected in self.next_bases(base):
                base, position = expected, 0
                content = self.content(base)
            else:
                bad = Bad("the log ends here")
                content = self.looked_at_again(base, position, expected, content, bad)
                if content is None:
                    return

    def looked_at_again(self, base, position, expected, content, bad):
        """The segment's bytes if there is more now; None at the log's end; or damage."""
        with open(self.file("lock"), "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if expected >= self.durable():
                    return None
            again = self.content(base)
            if again != content or (position == len(again) and expected in self.next_bases(base)):
                return again
            self.judge(expected, base, content, position, bad.args[0])
            return None

    def judge(self, expected, base, content, position, why):
        """Raises damage if the log may not end here."""
        synced = [expected]
        at = content.find(MAGIC, position + 1)
        while at >= 0:
            try:
                synced.append(header_at(content, at, base, self.number)["synced"])
            except (Bad, Stop):
                pass
            at = content.find(MAGIC, at + 1)
        if expected < max(self.durable(), *synced) or self.next_bases(base):
            if isinstance(why, Stop):
                raise why
            raise damage(f"{base:020}.log is damaged at byte {position}, offset {expected}: {why}")


# --- JSON as `consume -J` prints it --------------------------------------------------


def is_text(value):
    try:
        value.decode()
        return True
    except UnicodeDecodeError:
        return False


def field(name, value):
    """A member of the object: text, or base64 if any of it is not UTF-8."""
    items = value if isinstance(value, list) else [value]
    if all(item is None or is_text(item) for item in items):
        items = [item if item is None else item.decode() for item in items]
    else:
        name += "_base64"
        items = [item if item is None else base64.b64encode(item).decode() for item in items]
    return name, items if isinstance(value, list) else items[0]


def json_line(offset, append_time, key, headers, own_time, value):
    members = [("offset", offset), ("next", offset + 1)]
    members.append(("ts", append_time if own_time is None else own_time))
    members.append(("append_ts", append_time))
    if key is not None:
        members.append(field("key", key))
    if headers:
        members.append(field("headers", headers))
    members.append(field("payload", value))
    return json.dumps(dict(members), ensure_ascii=False, separators=(",", ":"))


def main():
    out = sys.stdout.buffer
    try:
        for append_time, records in Log(sys.argv[1]).records():
            for offset, key, headers, own_time, value in records:
                line = json_line(offset, append_time, key, headers, own_time, value)
                out.write(line.encode() + b"\n")
    except Stop as stop:
        out.flush()
        print(f"reader.py: {stop}", file=sys.stderr)
        sys.exit(stop.status)


if __name__ == "__main__":
    main()
