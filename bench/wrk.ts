/** Runs wrk against one target and reads its figures. */
import { join } from 'node:path'
import type { Target } from './http-client.ts'
import { runOnLoadCore } from './processes.ts'

/** Of everyday size for one instance; enough to keep one core busy without measuring the queue alone. */
export const CONNECTIONS = 32

export type WrkResult = { requests: number; perSecond: number; p50: number; p99: number; failed: number }

/** Latencies are in milliseconds. The answers that failed are not among the requests a second. */
export async function runWrk(wrk: string, target: Target, seconds: number): Promise<WrkResult> {
  const headers = Object.entries(target.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const script = ['-s', join(import.meta.dir, 'post.lua')]
  const sizes = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--timeout', '10s']
  const text = await runOnLoadCore([wrk, ...sizes, ...script, ...headers, target.url], { BENCH_BODY: target.body })
  const line = /^BENCH (\{.*\})$/m.exec(text)?.[1]
  if (!line) throw new Error(`wrk said nothing that can be read: ${text.slice(-500)}`)
  const { requests, microseconds, p50, p99, errors, refused } = JSON.parse(line) as Record<string, number>
  const good = (requests ?? 0) - (refused ?? 0)
  return {
    requests: good,
    perSecond: (good * 1_000_000) / (microseconds ?? 1),
    p50: (p50 ?? Number.NaN) / 1000,
    p99: (p99 ?? Number.NaN) / 1000,
    failed: (errors ?? 0) + (refused ?? 0),
  }
}
