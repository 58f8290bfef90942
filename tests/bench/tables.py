"""The tables of docs/benchmarks.md, from what convolved-bench printed.

    tables.py BENCH.json [PEERS.json]

BENCH.json is the output of `convolved-bench --json`. PEERS.json has what other libraries took in the
same run: {"milliseconds": {WORK: {PEER: ms}}}; WORKS names the row that each WORK belongs to.
"""
import json
import sys

# filter as convolved-bench names it, samples, side of the image, name among the peers
WORKS = (
    ("gaussian 3x3", "u8", 1, 8192, "gauss3_u8"),
    ("gaussian 5x5", "u8", 1, 8192, "gauss5_u8"),
    ("sobel", "u8", 1, 8192, "sobel_magnitude_u8"),
    ("gaussian 5x5", "u8", 4, 4096, "gauss5_rgba_half"),
    ("gaussian 5x5", "u8", 4, 8192, None),
    ("gaussian 5x5", "f32", 1, 8192, "gauss5_f32"),
    ("matrix 5x5", "u8", 1, 8192, "matrix5_u8"),
    ("matrix 15x15", "u8", 1, 8192, "matrix15_u8"),
    ("gaussian 31x31", "u8", 1, 8192, "gauss31_u8"),
    ("bilateral 9x9", "u8", 1, 8192, "bilateral9_u8"),
    ("matrix 5x5", "f32", 1, 8192, "matrix5_f32"),
)


def samples_of(result):
    return result["type"] + (f" x{result['bands']}" if result["bands"] > 1 else "")


def milliseconds(result):
    return f"{result['median_seconds'] * 1e3:.4g}"


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def head(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def own(result):
    """Ours: neither published nor on the processor; they have rows of their own."""
    return result["origin"] in ("general", "special")


def fastest(results, peers):
    columns = sorted({peer for work in peers.values() for peer in work})
    head("filter", "pixels", "variant", "ms", "of copy", *columns)
    for name, kind, bands, side, work in WORKS:
        rows = [r for r in results if own(r) and r["verified"] and r["width"] == r["height"] == side and
                (r["type"], r["bands"]) == (kind, bands) and r["filter"] == name]
        if rows:
            best = min(rows, key=lambda r: r["median_seconds"])
            took = peers.get(work, {})
            row(best["filter"], f"{samples_of(best)}, {side}²", f"`{best['variant']}`", milliseconds(best),
                f"{best['share_of_copy']:.2f}",
                *(f"{took[peer]:.3g}" if peer in took else "-" for peer in columns))


def every(results):
    for group in dict.fromkeys((r["filter"], samples_of(r)) for r in results):
        rows = [r for r in results if (r["filter"], samples_of(r)) == group]
        sides = sorted({r["width"] for r in rows})
        reference = {r["width"]: r for r in rows if r["variant"] == "reference"}
        print(f"\n**{', '.join(group)}**\n")
        head("variant", *(f"{side}²" for side in sides), f"times `reference`, {sides[-1]}²")
        for variant in dict.fromkeys(r["variant"] for r in rows):
            by_side = {r["width"]: r for r in rows if r["variant"] == variant}
            cells = [f"{milliseconds(r)} ({r['share_of_copy']:.2f})" if r else "-"
                     for r in map(by_side.get, sides)]
            last = by_side.get(sides[-1])
            times = reference[sides[-1]]["median_seconds"] / last["median_seconds"] \
                if last and sides[-1] in reference else None
            row(f"`{variant}`", *cells, f"{times:.4g}" if times else "-")


def main():
    with open(sys.argv[1]) as f:
        results = [json.loads(line) for line in f]
    peers = {}
    if len(sys.argv) > 2:
        with open(sys.argv[2]) as f:
            peers = json.load(f)["milliseconds"]
    for device in results:
        print(f"{device['device']}, driver {device['driver']}, copy "
              f"{device['copy_bytes_per_second'] / 1e12:.2f} TB/s\n")
        wrong = [r for r in device["results"] if not r["verified"]]
        print(f"{len(device['results'])} rows, {len(wrong)} not verified\n")
        fastest(device["results"], peers)
        print("\n### Every variant")
        every(device["results"])


if __name__ == "__main__":
    main()
