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


def put(page, part, text):
    """Between two marks of the page; the words around them are written by hand."""
    with open(page) as file:
        around = re.split(rf"(?<=<!-- {part} -->\n).*(?=<!-- end of {part} -->)", file.read(), flags=re.S)
    if len(around) != 2:
        sys.exit(f"letters: {page} has no marks for {part}")
    with open(page, "w") as file:
        file.write(around[0] + text + "\n" + around[1])


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
