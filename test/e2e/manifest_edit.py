"""Changes a number in a manifest, or takes a field out, and sums it anew, as if it had been written so.

manifest_edit.py MANIFEST FIELD NUMBER|-"""
import re
import sys

path, field, number = sys.argv[1:4]
table = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    table.append(i)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


with open(path, "rb") as f:
    text = f.read()
name = b'"%s":' % field.encode()
if number == "-":
    text, n = re.subn(name + b'("[^"]*"|[0-9]+),', b"", text)
else:
    text, n = re.subn(name + b"[0-9]+", name + b"%d" % int(number), text)
assert n == 1, f"{n} times {field} in {path}"
at = text.rindex(b'"self_crc":"') + 12
digits = b"%08x" % crc32c(text[:at] + b" " * 8 + text[at + 8 :])
with open(path, "wb") as f:
    f.write(text[:at] + digits + text[at + 8 :])
