-- Posts the file of the argument, or asks without one; prints the figures as a line of JSON.
function init(args)
	if args[1] then
		wrk.method = "POST"
		wrk.body = assert(io.open(args[1], "rb")):read("*a")
	end
end

function done(summary, latency)
	local e = summary.errors
	print(string.format('\n{"requests": %d, "seconds": %g, "bytes": %.0f, "p50_ms": %g, "p99_ms": %g, "errors": %d}',
		summary.requests, summary.duration * 1e-6, summary.bytes, latency:percentile(50) * 1e-3,
		latency:percentile(99) * 1e-3, e.connect + e.read + e.write + e.status + e.timeout))
end
