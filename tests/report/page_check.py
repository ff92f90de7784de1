#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""page_check.py page|index|images FILE [JSON]: is the page well-formed, and does it hold together? One line for each
mistake.

page: of tidemark replay --html. Each element is closed; names are unique, and links lead to them; from each posted
request an arrow leads to where the list says that it landed. index: of crashtest --html. Each cell that breaks leads to
a file that is there; each column has its contract explained. images: of tidemark images --html. Each cause of the JSON
results is there as they have it, and its chart has the events of its list.
"""
import html.parser
import json
import os
import re
import sys
import urllib.parse

VOID = {"meta", "br", "input"}
# End tags that HTML lets one leave out, and what is between them then.
IMPLIED = {
    "td": {"td", "th"}, "th": {"td", "th"}, "tr": {"td", "th"}, "thead": {"td", "th"}, "tbody": {"td", "th"},
    "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "dl": {"dt", "dd"}, "table": {"td", "th"},
}


class Element:
    def __init__(self, tag, attrs, parent):
        self.tag, self.attrs, self.parent, self.children = tag, attrs, parent, []
        self.parts = []  # children and texts, as they follow each other

    def classes(self):
        return (self.attrs.get("class") or "").split()

    def all(self, tag=None, cls=None):
        for child in self.children:
            if (not tag or child.tag == tag) and (not cls or cls in child.classes()):
                yield child
            yield from child.all(tag, cls)

    def whole(self):
        return "".join(p if isinstance(p, str) else p.whole() for p in self.parts
                       if isinstance(p, str) or p.tag != "title" or self.tag == "head")

    def add(self, child):
        self.children.append(child)
        self.parts.append(child)

    def first(self, tag):
        return next(self.all(tag), None)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.wrong, self.root = [], Element("", {}, None)
        self.at = self.root
        self.feed(text)
        self.close()
        if self.at is not self.root:
            self.wrong.append("<%s> is not closed" % self.at.tag)

    def handle_starttag(self, tag, attrs):
        while self.at.tag in IMPLIED.get(tag, ()):
            self.at = self.at.parent
        names = [n for n, _ in attrs]
        if len(names) != len(set(names)):
            self.wrong.append("line %d: an attribute twice" % self.getpos()[0])
        element = Element(tag, dict(attrs), self.at)
        self.at.add(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag, attrs):
        self.at.add(Element(tag, dict(attrs), self.at))

    def handle_endtag(self, tag):
        while self.at.tag in IMPLIED.get(tag, ()):
            self.at = self.at.parent
        if self.at.tag != tag:
            self.wrong.append("line %d: </%s> closes <%s>" % (self.getpos()[0], tag, self.at.tag))
            return
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.parts.append(data)


def check_links(page, folder, wrong):
    ids = [e.attrs["id"] for e in page.root.all() if "id" in e.attrs]
    for name in {i for i in ids if ids.count(i) > 1}:
        wrong.append("two elements are named " + name)
    for e in page.root.all():
        if "src" in e.attrs:
            wrong.append("loads " + e.attrs["src"])
    for link in page.root.all("a"):
        href = link.attrs.get("href", "")
        if href.startswith("#"):
            if href[1:] not in ids:
                wrong.append("nothing is named " + href)
        elif folder is None or "/" in href or not os.path.isfile(os.path.join(folder, urllib.parse.unquote(href))):
            wrong.append("a link leads nowhere: " + href)


# --- arrows


def check_arrows(page, wrong):
    """By the words of the list, without what the program goes by: numbers of messages under an operation."""
    names = [n.attrs["data-lane"] for n in page.root.all("div", "name")]
    rows = list(page.root.all("g", "row"))
    if len(names) != len(rows):
        wrong.append("%d names, %d lanes" % (len(names), len(rows)))
        return 0
    where = {}  # event: [(lane, x)]
    for lane, row in enumerate(rows):
        for m in row.all("g", "m"):
            spots = [s for s in m.all() if s.tag in ("circle", "path", "rect") and "halo" not in s.classes()]
            if "po" in m.classes():
                x = int(re.match(r"M(\d+)", spots[0].attrs["d"]).group(1)) + 5
            elif "cx" in spots[0].attrs:
                x = int(spots[0].attrs["cx"])
            elif "x" in spots[0].attrs:
                x = int(spots[0].attrs["x"]) + 4
            else:
                continue
            where.setdefault(int(m.attrs["data-e"]), []).append((lane, x))
    arrows = {}
    for a in page.root.all("path", "arrow"):
        d = {k: int(a.attrs["data-" + k]) for k in ("post", "from", "to", "x1", "x2")}
        if not 0 <= d["from"] < len(names) or not 0 <= d["to"] < len(names) or d["x1"] > d["x2"]:
            wrong.append("an arrow between no lanes, or into the past: %s" % a.attrs)
        arrows.setdefault(d["post"], []).append(d)
    landings = 0
    for table in page.root.first("section") and [t for s in page.root.all("section") if s.attrs.get("id") == "events"
                                                 for t in s.all("table")]:
        count, posts, reached = {}, [], set()
        for tr in table.all("tr"):
            if not re.fullmatch(r"e\d+", tr.attrs.get("id", "")):
                continue
            event = int(tr.attrs["id"][1:])
            who, label, what = (c.whole() for c in tr.children[1:4])
            post = re.match(r"(\S+): post ", what)
            if post:
                key = (post.group(1), label)
                count[key] = count.get(key, 0) + 1
                posts.append((event, post.group(1).split("/")[0], label, count[key]))
            landing = re.match(r"message (\d+) packet 1: ", what)
            if not landing or event not in where:
                continue
            sent = [p for p in posts if p[2] == label and p[3] == int(landing.group(1)) and
                    p[1] != who.split("/")[0] and p[0] in where]
            if not sent:
                continue
            lanes = [s for s in where[event] if names[s[0]] == who]
            found = any(a["to"] == lane and a["from"] == from_lane and a["x1"] == from_x and a["x2"] == x
                        for p in sent for a in arrows.get(p[0], []) for lane, x in lanes
                        for from_lane, from_x in where[p[0]])
            # Of lines that land one directly after the other the first one has the arrow.
            this = [(who, label, landing.group(1), x) for _, x in lanes]
            found = found or any(t in reached or t[:3] + (t[3] - 16,) in reached for t in this)
            landings += 1
            if found:
                reached.update(this)
            elif lanes:
                wrong.append("no arrow from its post to event %d: %s" % (event, what))
    return landings


def between(page):
    """The arrows of the run, each as "c1>server/server", by the events that are posts."""
    names = [n.attrs["data-lane"] for n in page.root.all("div", "name")]
    return [(int(a.attrs["data-post"]), a.classes()[1], names[int(a.attrs["data-from"])] + ">" +
             names[int(a.attrs["data-to"])]) for a in page.root.all("path", "arrow")]


def check_group(group, wrong):
    """Does the one row of a copy say what its rows say together?"""
    total, rows = group.children[0], group.children[1:]
    cells = [[c.whole() for c in r.children] for r in group.children]
    if "data-line" in rows[0].attrs:
        lines = len({r.attrs["data-line"] for r in rows})
        if len({c[0] for c in cells}) > 1 or not re.search(r": %d lines?$" % lines, cells[0][2]):
            wrong.append("%s stands for %d lines" % (cells[0], lines))
        return
    again = re.match(r"the (\d+ lines|line) above again, (\d+) more times, until [0-9.]+ us$", cells[0][3])
    if again:
        if len(rows) < int(again.group(2)):
            wrong.append("%s stands for %d rows" % (total.whole(), len(rows)))
        return
    size = sum(int(re.search(r"(\d+) bytes", c[3]).group(1)) for c in cells[1:])
    if len({(c[1], c[2], c[4]) for c in cells}) > 1 or " %d bytes " % size not in cells[0][3] or \
            not cells[0][3].endswith(", in %d pieces" % len(rows)):
        wrong.append("%s stands for %d bytes in %d rows" % (total.whole(), size, len(rows)))


# --- the three kinds of pages


def check_page(page, wrong):
    text = page.root.whole()
    for words in ("What was run", "hardware", "client 1", "tidemark replay ", "version", "plain run"):
        if words not in text:
            wrong.append("the page does not say: " + words)
    broken = {p.whole().split(":")[0].split()[-1] for p in page.root.all("p", "rule")}
    explained = {dt.whole().strip() for dt in page.root.all("dt")}
    if not broken or not broken <= explained:
        wrong.append("broken: %s, explained: %s" % (sorted(broken), sorted(explained)))
    if not all(len(dd.whole().split()) > 2 for dd in page.root.all("dd")):
        wrong.append("a contract is not explained")
    landings = check_arrows(page, wrong)
    for group in page.root.all("tbody", "group"):
        if "sum" not in group.children[0].classes() or len(group.children) < 3:
            wrong.append("a group without its row, or of one row")
            continue
        check_group(group, wrong)
    print("landings %d" % landings)
    for post, kind, lanes in between(page):
        print("arrow %s %s" % (kind, lanes))


def check_index(page, wrong):
    tables = list(page.root.all("table", "matrix"))
    if not tables:
        wrong.append("no matrix")
        return
    contracts = [a.whole() for a in tables[0].first("thead").all("abbr")]
    explained = {dt.whole().strip() for dt in page.root.all("dt")}
    if not contracts or set(contracts) != explained:
        wrong.append("columns %s, explained %s" % (contracts, sorted(explained)))
    cells = links = 0
    for tr in tables[0].all("tr"):
        if not tr.first("td"):
            continue
        tds = [c for c in tr.children if c.tag == "td"]
        if len(tds) != len(contracts) + 2:
            wrong.append("a row of %d cells: %s" % (len(tds), tr.whole()))
        for td in tds[:-2]:
            cells += 1
            link = td.first("a")
            title = (td.first("a") or td.first("span") or td).attrs.get("title", "")
            links += link is not None
            if ("breaks" in td.classes() or " in " in title) and not link:
                wrong.append("a cell breaks and leads nowhere: " + title)
            print("cell %s" % (td.classes() or ["-"])[0])
    commands = [c.whole() for c in page.root.all("code")]
    if len(commands) < links or not all(c.startswith("tidemark replay ") for c in commands):
        wrong.append("%d cells lead to pages, %d commands" % (links, len(commands)))
    print("cells %d, links %d" % (cells, links))


def check_cause(section, number, cause, wrong):
    """One section against what the results say of it."""
    def say(what):
        wrong.append("cause %d: %s" % (number, what))

    heading = section.first("h2").whole()
    images = "%d image%s" % (cause["images"], "" if cause["images"] == 1 else "s")
    if heading != "%d. %s; %s" % (number, cause["verdict"], images):
        say("the heading is " + heading)
    command = [c.whole() for p in section.all("p", "again") for c in p.all("code")]
    if len(command) != 1 or not command[0].endswith("--image " + cause["image"]):
        say("the command is %s" % command)
    facts = [li.whole() for li in section.all("li", "fact")]
    rows = {int(tr.attrs["id"].split("-e")[1]): tr for tr in section.all("tr") if "-e" in tr.attrs.get("id", "")}
    if len(facts) != len(cause["lost"]):
        say("%d were lost, %d are told" % (len(cause["lost"]), len(facts)))
    for lost, fact in zip(cause["lost"], facts):
        what = "the %s of %d byte%s at %s+0x%x" % (lost["kind"], lost["bytes"], "" if lost["bytes"] == 1 else "s", lost["file"],
                                                   lost["offset"])
        for words in [what, "event %d" % lost["event"]] + [f for f in lost["source"].split(";") if f]:
            if words not in fact:
                say("lost, not told: " + words)
        row = rows.get(lost["event"])
        if row is None or "cause" not in row.classes() or what not in row.whole():
            say("event %d is not listed as lost" % lost["event"])
    if {e for e, tr in rows.items() if "cause" in tr.classes()} != {lost["event"] for lost in cause["lost"]}:
        say("other events are listed as lost")
    # The failure is where it was.
    order = [int(tr.attrs["id"].split("-e")[1]) if "-e" in tr.attrs.get("id", "") else cause["event"] - 0.5
             for tr in section.all("tr") if "-e" in tr.attrs.get("id", "") or "failure" in tr.classes()]
    if order != sorted(order) or order.count(cause["event"] - 0.5) != 1:
        say("the events are not in their order: %s" % order)
    # Each line that is not whole is shown so; each part of it is drawn.
    flight = {tr.children[0].whole(): tr for t in section.all("table", "flight") for tr in t.all("tr") if tr.first("td")}
    for line in cause["lines"][:40]:
        tr = flight.get("%s+0x%x" % (line["file"], line["offset"]))
        if tr is None or tr.children[2].whole() != "%d of %d" % (line["left"], line["versions"]):
            say("line 0x%x is not shown as it is" % line["offset"])
            continue
        drawn = [len(list(tr.all("rect", c))) for c in ("kept", "lost")]
        if line["versions"] <= 32 and drawn != [line["left"], line["versions"] - line["left"]]:
            say("line 0x%x is not drawn as it is" % line["offset"])
    whole = ["good" in tr.children[2].classes() for tr in flight.values()]
    if whole != sorted(whole):
        say("the lines that are not whole do not come first")
    if sum("good" not in tr.children[2].classes() for tr in flight.values()) != min(len(cause["lines"]), 40):
        say("other lines are not whole")
    # The chart: each listed event once in the lanes of threads, and what was lost with a ring.
    names = list(section.all("div", "name"))
    lanes = [g for g in section.all("g") if "translate" in g.attrs.get("transform", "")]
    marks = [m for n, g in zip(names, lanes) if "pm" not in n.classes() for m in g.all("g", "m")]
    pm = [n.whole().split("+0x")[-1] for n in names if "pm" in n.classes()]
    if len(pm) != min(len(cause["lines"]), 8) or not set(pm) <= {"%x" % line["offset"] for line in cause["lines"]}:
        say("other lines have lanes: %s" % pm)
    if len(names) != len(lanes) or len(marks) != len(rows):
        say("%d names, %d lanes, %d marks, %d events" % (len(names), len(lanes), len(marks), len(rows)))
    if sum("cause" in m.classes() for m in marks) != len({lost["event"] for lost in cause["lost"]}):
        say("other events have rings")
    if len(list(section.all("g", "crash"))) != 1:
        say("not one failure in the chart")


def check_images(page, wrong):
    with open(sys.argv[3], encoding="utf-8") as f:
        results = json.load(f)
    text = page.root.whole()
    for words in ("What was recorded", "hardware", "checker", "command", "version", results["log"]):
        if words not in text:
            wrong.append("the page does not say: " + words)
    figures = {int(b.whole()) for u in page.root.all("ul", "figures") for b in u.all("b")}
    for name in ("cuts", "images", "bad"):
        if results[name] not in figures:
            wrong.append("the page does not say how many %s: %d" % (name, results[name]))
    sections = list(page.root.all("section", "cause"))
    if len(sections) != len(results["causes"]):
        wrong.append("%d causes, %d sections" % (len(results["causes"]), len(sections)))
    for number, (section, cause) in enumerate(zip(sections, results["causes"]), 1):
        check_cause(section, number, cause, wrong)


def main():
    kind, path = sys.argv[1:3]
    with open(path, encoding="utf-8") as f:
        page = Page(f.read())
    wrong = page.wrong
    folder = os.path.dirname(path)
    check_links(page, folder if kind == "index" else None, wrong)
    {"index": check_index, "page": check_page, "images": check_images}[kind](page, wrong)
    for line in wrong[:10]:
        print("WRONG " + line)
    return 1 if wrong else 0


sys.exit(main())
