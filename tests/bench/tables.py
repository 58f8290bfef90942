"""The tables of docs/benchmarks.md."""
import json
import pathlib

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


def tables(options):
    """The tables of docs/benchmarks.md, from what convolved-bench printed.

    BENCH is a file of `convolved-bench --json`. PEERS is one of what other libraries took in the
    same run: {"milliseconds": {WORK: {PEER: ms}}}; WORKS names the row that each WORK belongs
    to."""
    peers = json.loads(pathlib.Path(options.peers).read_text())["milliseconds"] if options.peers else {}
    for line in pathlib.Path(options.bench).read_text().splitlines():
        device = json.loads(line)
        results = device["results"]
        yield {"device": device["device"], "driver": device["driver"],
               "copy, TB/s": device["copy_bytes_per_second"] / 1e12, "rows": len(results), "not verified": sum(not r["verified"] for r in results)}
        yield from fastest(results, peers)
        yield from every(results)


def samples_of(result):
    return result["type"] + (f" x{result['bands']}" if result["bands"] > 1 else "")


def fastest(results, peers):
    """Ours: neither published nor on the processor; they have rows of their own."""
    columns = sorted({peer for work in peers.values() for peer in work})
    for name, kind, bands, side, work in WORKS:
        wanted = name, kind, bands, side, side
        rows = [r for r in results if r["origin"] in ("general", "special") and r["verified"] and
                (r["filter"], r["type"], r["bands"], r["width"], r["height"]) == wanted]
        if rows:
            best = min(rows, key=lambda r: r["median_seconds"])
            yield {"filter": name, "pixels": f"{samples_of(best)}, {side}²", "variant": f"`{best['variant']}`",
                   "ms": best["median_seconds"] * 1e3, "of copy": f"{best['share_of_copy']:.2f}",
                   **{peer: peers.get(work, {}).get(peer) for peer in columns}}


def every(results):
    for filter, samples in dict.fromkeys((r["filter"], samples_of(r)) for r in results):
        rows = [r for r in results if (r["filter"], samples_of(r)) == (filter, samples)]
        sides = sorted({r["width"] for r in rows})
        ms = {(r["variant"], r["width"]): r["median_seconds"] * 1e3 for r in rows}
        copies = {(r["variant"], r["width"]): f"{r['median_seconds'] * 1e3:.4g} ({r['share_of_copy']:.2f})" for r in rows}
        reference = ms.get(("reference", sides[-1]))
        for variant in dict.fromkeys(r["variant"] for r in rows):
            last = ms.get((variant, sides[-1]))
            yield {f"{filter}, {samples}": f"`{variant}`", **{f"{side}²": copies.get((variant, side)) for side in sides},
                   f"times `reference`, {sides[-1]}²": reference / last if reference and last else None}
