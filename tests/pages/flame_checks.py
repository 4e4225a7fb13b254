"""Checks of the flame graph of a report, and of the selection that it shares with the table and the charts.

Each takes a browser and a page of an invented graph program, whose hottest sites are made by pagerank, graph.cc:203 and 204.
"""
import time

STATE = "return {...document.documentElement.dataset}.problems ?? null"
HASH = "return location.hash"
FRAMES = """
    const width = (g) => g.querySelector("rect").getBoundingClientRect().width;
    return [...document.querySelectorAll("g.frame")].map((g) => ({
        number: +g.dataset.number, label: g.getAttribute("aria-label"), level: +g.getAttribute("aria-level"), width: width(g),
        fill: getComputedStyle(g.querySelector("rect")).fill, isDim: g.classList.contains("dim"), tab: g.getAttribute("tabindex"),
        text: g.querySelector("div").textContent, isChosen: g.getAttribute("aria-selected") === "true",
    }))
"""
ROWS = "return [...document.querySelectorAll('#site-table tbody tr')].filter((r) => !r.hidden).map((r) => r.cells[0].dataset.v)"
MARKED = "return [...document.querySelectorAll('#site-table tr.chosen')].map((r) => r.cells[0].dataset.v)"
BAR = "const bar = document.getElementById('selected'); return bar.hidden ? null : bar.querySelector('p').textContent"
FOUND = "return document.getElementById('flame-found').textContent"
SEEN = "return document.getElementById('flame').getBoundingClientRect().width"
POINTS = "const points = [...document.querySelectorAll('#curve path')].filter((path) => path.getAttribute('d').startsWith('M1 0A1 1'));"
LIT = POINTS + "return [points.filter((path) => +(path.getAttribute('fill-opacity') ?? 1) === 1).length, points.length]"
TIMES = "return [...document.querySelectorAll('#resident text')].map((text) => text.textContent).filter((text) => / m?s$/.test(text))"


def frames(browser):
    return browser.script(FRAMES)


def number(browser, name):
    """The number of the first frame of this name."""
    return next(frame["number"] for frame in frames(browser) if frame["label"].startswith(name))


def click_frame(browser, name):
    browser.click(f'g.frame[data-number="{number(browser, name)}"]')


def by_number(browser, of):
    return next((frame for frame in frames(browser) if frame["number"] == of), None)


def seen(browser, chart, script):
    """What a script finds in a chart; a chart follows a selection when it is scrolled to."""
    browser.script(f"document.getElementById('{chart}').scrollIntoView({{block: 'center'}})")
    browser.settle()
    return browser.script(script)


def silent(browser):
    assert browser.script(STATE) is None, browser.script(STATE)
    messages = browser.console()
    assert messages == [], messages


def is_drawn(browser, page):
    for width in (1280, 400):
        for scheme in ("light", "dark"):
            browser.open(page, width=width, scheme=scheme)
            drawn = frames(browser)
            full = browser.script(SEEN)
            assert len(drawn) > 10, drawn
            assert abs(drawn[0]["width"] - full) < 1 and drawn[0]["text"] == "all sites", (drawn[0], full)
            assert len({frame["fill"] for frame in drawn}) > 5, "hotter frames have other colours"
            assert [frame["tab"] for frame in drawn].count("0") == 1, "one stop of the tab key"
            for level in range(2, 5):
                row = sum(frame["width"] for frame in drawn if frame["level"] == level)
                assert row <= full + 1, f"level {level} is {row} pixels wide of {full}"
            assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
            silent(browser)


def zooms_by_a_click(browser, page):
    browser.open(page)
    full = browser.script(SEEN)
    pagerank = number(browser, "pagerank")
    assert by_number(browser, pagerank)["width"] < full - 1
    click_frame(browser, "pagerank")
    assert abs(by_number(browser, pagerank)["width"] - full) < 1
    assert not any(frame["label"].startswith("bfs") for frame in frames(browser)), "what is beside it is gone"
    browser.click("#flame-whole")
    assert by_number(browser, pagerank)["width"] < full - 1
    assert browser.script(BAR) is None and browser.script(HASH) == "", browser.script(HASH)
    silent(browser)


def goes_back(browser, page):
    browser.open(page)
    click_frame(browser, "pagerank")
    browser.script("history.back()")
    browser.settle()
    assert browser.script(BAR) is None
    assert any(frame["label"].startswith("bfs") for frame in frames(browser))


def frame_filters_the_table(browser, page):
    browser.open(page)
    everything = browser.script(ROWS)
    click_frame(browser, "pagerank")
    rows = browser.script(ROWS)
    assert sorted(rows) == ["graph.cc:203 pagerank(Graph const&, int)", "graph.cc:204 pagerank(Graph const&, int)"], rows
    assert browser.script(BAR).startswith("Selected: pagerank(Graph const&, int) 2 sites, 61 % of the"), browser.script(BAR)
    lit, points = seen(browser, "curve", LIT)
    assert lit == 2 and points > 2, (lit, points)
    browser.click("#selected .clear")
    assert browser.script(ROWS) == everything
    lit, points = seen(browser, "curve", LIT)
    assert lit == points, (lit, points)


def row_is_found_in_the_graph(browser, page):
    browser.open(page)
    browser.click("#site-table tbody tr:nth-child(3) .choose")
    assert browser.script(MARKED) == ["graph.cc:92 Graph::Graph(EdgeList const&)"], browser.script(MARKED)
    lit = [frame["label"].split(":")[0] for frame in frames(browser) if not frame["isDim"]]
    assert sorted(lit) == ["Graph", "all sites", "graph.cc", "main in main.cc", "std"], lit
    browser.click("#flame-controls [value=code]")
    lit = [frame["label"] for frame in frames(browser) if not frame["isDim"]]
    assert any(label.startswith("visit(") for label in lit), lit
    data = [label for label in lit if label.startswith("graph.cc:") and "Graph::Graph" in label]
    assert data and all(label.startswith("graph.cc:92") for label in data), data
    browser.click("#site-table tbody tr:nth-child(3) .choose")
    assert browser.script(BAR) is None and not any(frame["isDim"] for frame in frames(browser))
    silent(browser)


def function_selects_the_data_that_it_accesses(browser, page):
    browser.open(page, fragment="#flame=code")
    click_frame(browser, "visit(")
    assert len(browser.script(ROWS)) > 5
    browser.click("#flame-controls [value=allocation]")
    assert len(browser.script(ROWS)) > 5, "the selection outlives the change of the graph"


def point_and_heat_row_select_their_site(browser, page):
    browser.open(page)
    x, y = browser.script(
        POINTS + "points[0].scrollIntoView({block: 'center'}); const r = points[0].getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]"
    )
    browser.click_at(x, y)
    assert len(browser.script(MARKED)) == 1, "a click on the first point of the curve"
    browser.click("#selected .clear")
    # Settled, because a chart that is scrolled to is drawn anew, and a click in between would hit nothing.
    x, y = seen(
        browser, "heat",
        "const chart = document.getElementById('heat'); chart.scrollIntoView({block: 'start'}); const r = chart.getBoundingClientRect();"
        "return [r.x + r.width * 0.8, r.y + 14]",
    )
    browser.click_at(x, y)
    assert browser.script(MARKED) == ["graph.cc:203 pagerank(Graph const&, int)"], browser.script(MARKED)
    silent(browser)


def zooms_in_time(browser, page):
    ends = "return ['from', 'to'].map((end) => +document.getElementById('time-' + end).value)"
    browser.open(page)
    whole = browser.script(ends)
    assert whole[0] == 0 and whole[1] > 30 and seen(browser, "resident", TIMES)[0] == "0 ms"
    browser.script("const from = document.getElementById('time-from'); from.value = 10; from.dispatchEvent(new Event('change'))")
    browser.settle()
    assert seen(browser, "resident", TIMES)[0] == "10 s" and browser.script(HASH).startswith("#time=10-30"), browser.script(HASH)
    fragment = browser.script(HASH)
    browser.open(page, fragment=fragment)
    assert seen(browser, "resident", TIMES)[0] == "10 s" and browser.script(ends)[0] == 10
    browser.script("const to = document.getElementById('time-to'); to.value = 3; to.dispatchEvent(new Event('change'))")
    assert browser.script(ends) == [10, whole[1]], "no part of the run, put right"
    browser.click("#time-whole")
    assert seen(browser, "resident", TIMES)[0] == "0 ms" and browser.script(ends) == whole
    handle = (
        "const chart = document.getElementById('resident'); chart.scrollIntoView({block: 'center'}); const box = chart.getBoundingClientRect();"
        "const low = [...chart.querySelectorAll('path')].map((path) => path.getBoundingClientRect()).filter((r) => r.top > box.bottom - 40 && r.width < 15 && r.height > 10);"
        "const left = low.sort((a, b) => a.x - b.x)[0]; return [left.x + left.width / 2, left.y + left.height / 2]"
    )
    browser.drag(*browser.script(handle), 300)
    shown = browser.script(ends)
    assert 5 < shown[0] < 15 and shown[1] == whole[1], shown
    assert browser.script(HASH).startswith("#time=")
    silent(browser)


def searches(browser, page):
    browser.open(page)
    before = {frame["number"]: frame["fill"] for frame in frames(browser)}
    browser.script("document.getElementById('flame-find').focus()")
    browser.command("Input.insertText", text="PageRank")
    browser.settle()
    found = [frame for frame in frames(browser) if frame["fill"] != before[frame["number"]]]
    assert len(found) == 3 and all("pagerank" in frame["label"] for frame in found), found
    assert browser.script(FOUND) == "3 frames, 61 % of the width", browser.script(FOUND)
    assert browser.script(HASH) == "#find=PageRank"
    browser.script("const f = document.getElementById('flame-find'); f.value = '['; f.dispatchEvent(new Event('input', {bubbles: true}))")
    assert browser.script(FOUND).startswith("0 frames"), "what is searched is text, no expression"
    silent(browser)


def restores_what_the_address_says(browser, page):
    browser.open(page)
    click_frame(browser, "bfs")
    browser.click("#flame-controls [value=bytes]")
    wanted, rows, fragment = frames(browser), browser.script(ROWS), browser.script(HASH)
    browser.open(page, fragment=fragment)
    assert frames(browser) == wanted and browser.script(ROWS) == rows
    assert browser.script("return document.querySelector('[name=flame-width]:checked').value") == "bytes"
    browser.open(page, fragment="#flame=code&find=pagerank")
    assert browser.script("return document.getElementById('flame-find').value") == "pagerank"
    assert browser.script(FOUND).startswith("7 frames"), browser.script(FOUND)
    assert frames(browser)[0]["text"] == "all code"
    silent(browser)


def bad_addresses_do_nothing(browser, page):
    for fragment in ("#zoom=-1", "#zoom=99999&frame=allocation.99999", "#flame=__proto__&width=x", "#site=%3Cimg%20src=x%3E", "#frame=code.x", "#time=9-3", "#time=1-1e99", "#time=.-5", "#=&&==%", "#sites"):
        browser.open(page, fragment=fragment)
        drawn = frames(browser)
        assert drawn[0]["text"] == "all sites" and len(drawn) > 10, fragment
        assert browser.script(BAR) is None, fragment
    silent(browser)


def works_by_keyboard(browser, page):
    browser.open(page)
    browser.script("document.querySelector('g.frame[tabindex=\"0\"]').focus()")
    focus = "return document.activeElement.getAttribute('aria-label')"
    for key, name in (("ArrowDown", "main"), ("ArrowDown", "pagerank"), ("ArrowRight", "Graph::Graph"), ("ArrowLeft", "pagerank"), ("ArrowUp", "main"), ("ArrowDown", "pagerank")):
        browser.key(key)
        assert browser.script(focus).startswith(name), (key, browser.script(focus))
    assert browser.script("return document.getElementById('flame-details').textContent").startswith("pagerank")
    browser.key("Enter")
    assert len(browser.script(ROWS)) == 2
    assert browser.script(focus).startswith("pagerank"), "the focus stays"
    browser.key("Escape")
    assert browser.script(BAR) is None and len(browser.script(ROWS)) > 2
    browser.script("document.querySelector('.choose').focus()")
    browser.key("Enter")
    assert len(browser.script(MARKED)) == 1
    silent(browser)


def charts_work_by_keyboard(browser, page):
    browser.open(page)
    said = "return document.activeElement.parentElement.querySelector('.said').textContent"
    tip = "return [...document.activeElement.children].filter((e) => e.style.visibility !== 'hidden').map((e) => e.textContent).join('')"
    for chart, keys, selected in (
        ("curve", ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"), "graph.cc:203 pagerank(Graph const&, int)"),
        ("heat", ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowLeft"), "small and rare sites (shared arena)"),
    ):
        browser.script(f"const chart = document.getElementById('{chart}'); chart.scrollIntoView({{block: 'center'}}); chart.focus()")
        browser.settle()
        told = []
        for key in keys:
            browser.key(key)
            told.append(browser.script(said))
            assert told[-1].split(",")[0] in browser.script(tip), (chart, told[-1], browser.script(tip))
        # There and back: the second place is another one, and the last key leads to the first.
        assert told[0] == told[-1] and len(set(told)) > 2, told
        assert selected in told[0], told
        browser.key("Enter")
        assert browser.script(MARKED) == [selected], browser.script(MARKED)
        browser.key("Escape")
        assert browser.script(BAR) is None
    silent(browser)


def draws_allocation_alone_without_code(browser, page):
    browser.open(page, fragment="#flame=code")
    assert frames(browser)[0]["text"] == "all sites"
    assert browser.script("return document.querySelectorAll('[name=flame-kind]').length") == 0
    silent(browser)


def stands_out_when_selected(browser, page, contrast):
    for width in (1280, 400):
        for scheme in ("light", "dark"):
            for fragment in ("#frame=allocation.2", "#flame=code&find=pagerank", "#width=bytes&site=" + site(browser, page)):
                browser.open(page, width=width, scheme=scheme, fragment=fragment)
                weak = browser.script(contrast)
                assert weak == [], f"{width} {scheme} {fragment}: {weak}"


def site(browser, page):
    browser.open(page)
    return browser.script("return document.querySelector('#site-table tbody tr').dataset.site")


def draws_many_sites(browser, page):
    browser.open(page)
    assert len(frames(browser)) > 50
    assert page.stat().st_size < 5_000_000
    silent(browser)


def lays_out_what_is_seen(browser, page):
    """A selection neither lays out tables that are far from the window nor computes the styles of the page anew."""
    last = "[...document.querySelectorAll('#site-table tbody tr')].at(-1)"
    drawn = f"return {last}.checkVisibility({{contentVisibilityAuto: true}})"
    browser.open(page)
    browser.settle()
    assert not browser.script(drawn), "the table is far below"
    browser.script(
        "window.asked = 0; const real = getComputedStyle;"
        "window.getComputedStyle = (of, ...more) => { asked += of === document.body || of === document.documentElement; return real(of, ...more); };"
    )
    browser.script("document.querySelectorAll('.choose')[1].click()")
    browser.settle()
    assert len(browser.script(MARKED)) == 1 and not browser.script(drawn), "it is selected there all the same"
    assert browser.script("return asked") == 0, "colours and font are known"
    browser.script(f"{last}.scrollIntoView()")
    browser.settle()
    assert browser.script(drawn), "what is scrolled to is there"
    box = browser.script(f"const box = {last}.getBoundingClientRect(); return [box.top, innerHeight, box.height]")
    assert -1 <= box[0] < box[1] and box[2] > 10, f"in the window: {box}"
    silent(browser)


def print_times(browser, page):
    """How long a page takes to be drawn and to answer a selection: printed, since it is the machine's, too."""
    browser.open(page)
    painted, complete = browser.script(
        "const paint = performance.getEntriesByName('first-contentful-paint')[0]; return [paint?.startTime, performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd]"
    )
    answers = []
    for turn in range(6):
        of = "document.querySelectorAll('.choose')[%d]" % turn if turn % 2 else "document.querySelectorAll('g.frame')[2]"
        event = "new MouseEvent('click', {bubbles: true})"
        body = (
            f"const done = arguments[0], start = performance.now(); {of}.dispatchEvent({event}); let left = 2;"
            "const step = () => left-- ? requestAnimationFrame(step) : done(performance.now() - start); step();"
        )
        answers.append(browser.call("POST", "/execute/async", {"script": body, "args": []}))
        time.sleep(0.2)
    middle = sorted(answers)[len(answers) // 2]
    print(
        f"page of 50,000 sites: {page.stat().st_size / 1e6:.1f} MB, first picture after {painted:.0f} ms, all charts after {complete:.0f} ms, "
        f"a selection drawn in the graph, the table and what is seen after {middle:.0f} ms ({min(answers):.0f} to {max(answers):.0f})"
    )


def checks(contrast):
    return [
        ("the flame graph is drawn, 400 and 1280 wide, light and dark", is_drawn, "planned"),
        ("a click in the flame graph zooms", zooms_by_a_click, "planned"),
        ("the browser's back button undoes a selection", goes_back, "planned"),
        ("a frame filters the site table", frame_filters_the_table, "planned"),
        ("a row of the site table is found in the flame graph", row_is_found_in_the_graph, "planned"),
        ("a function selects the data that it accesses", function_selects_the_data_that_it_accesses, "planned"),
        ("a point of the curve and a row of the heat map select their site", point_and_heat_row_select_their_site, "planned"),
        ("the charts over time zoom together", zooms_in_time, "planned"),
        ("the flame graph is searched", searches, "planned"),
        ("the address restores the selection", restores_what_the_address_says, "planned"),
        ("a bad address does nothing", bad_addresses_do_nothing, "planned"),
        ("the flame graph works by keyboard", works_by_keyboard, "planned"),
        ("the curve and the heat map work by keyboard", charts_work_by_keyboard, "planned"),
        ("a page without code has a flame graph of allocations", draws_allocation_alone_without_code, "plain"),
        ("text stands out in selected and found frames", stands_out_when_selected, "planned", contrast),
        ("50,000 sites are drawn", draws_many_sites, "many"),
        ("a selection lays out what is seen alone", lays_out_what_is_seen, "many"),
    ]
