"""What the scripts of the letters share: fio's job files, and the page and the CSV file with the figures."""
import csv
import os
import re
import sys


def sections(text):
    """fio's job file: [(name, [line])]."""
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line.strip()):
            found.append((match[1], []))
        elif line.strip():
            found[-1][1].append(line.strip())
    return found


def ratio(a, b):
    return f"{a / b:.2f}" if b else "-"


def titled(text):
    """{title: text} of what stands below each title of the third level."""
    _, *parts = re.split(r"^(?=### )", text, flags=re.M)
    return {part.split("\n", 1)[0]: part.rstrip("\n") + "\n" for part in parts}


def put(page, part, text):
    """Between two marks of the page; the words around them are written by hand. What stands there below other titles stays."""
    with open(page) as file:
        around = re.split(rf"(?<=<!-- {part} -->\n)(.*)(?=<!-- end of {part} -->)", file.read(), flags=re.S)
    if len(around) != 3:
        sys.exit(f"letters: {page} has no marks for {part}")
    new = titled(text)
    if new:
        text = "\n" + "\n".join(text for text in {**titled(around[1]), **new}.values())
    with open(page, "w") as file:
        file.write(around[0] + text + "\n" + around[2])


def keep(figures, rows):
    """Instead of the rows of the same tests."""
    head = ["test", "case", "scheduler", "group", "figure", "kernel", "lab", "ratio"]
    tests, old = {row[0] for row in rows}, []
    if os.path.exists(figures):
        with open(figures, newline="") as file:
            old = [row for row in csv.reader(file) if row and row != head and row[0] not in tests]
    with open(figures, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(head)
        out.writerows(sorted(old + rows, key=lambda row: row[0] == "buffered"))
