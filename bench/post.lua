-- What wrk sends, and how it reports: one line of JSON that the benchmark reads.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")

done = function(summary, latency, requests)
  io.write(string.format(
    'BENCH {"requests":%d,"microseconds":%d,"bytes":%d,"p50":%d,"p99":%d,"errors":%d,"refused":%d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    summary.errors.status))
end
