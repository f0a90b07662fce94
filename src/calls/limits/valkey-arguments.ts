/** The arguments of the scripts that count in Valkey, and what they answer. */
import type { Change, Needed } from './hold.ts'
import { storedName } from './leases.ts'
import type { Counter } from './scopes.ts'
import { eachPart, expire } from './window.ts'

export const keyOf = (counter: Counter, generation: string): string => `{limits}:${generation}:${storedName(counter)}`

/** 0: open calls. */
const lengthOf = ({ is_concurrent, window }: Counter): number => (is_concurrent ? 0 : window.length_ms)

/** Those of COUNT. `used`: each counter once, in the order of its keys. */
export function countArguments(checks: readonly Needed[], changes: readonly Change[], undo: string) {
  const indices = new Map<Counter, number>()
  // From 1, and the first key is that of the session.
  const indexOf = (counter: Counter) => indices.getOrInsertComputed(counter, () => indices.size + 2)
  const args: (string | number)[] = [undo, changes.length]
  for (const { counter, part, amount } of changes) args.push(indexOf(counter), lengthOf(counter), part, amount)
  for (const { counter, limit, amount } of checks) args.push(indexOf(counter), lengthOf(counter), limit, amount)
  return { used: [...indices.keys()], args }
}

/** Those of REPLACE for one counter. */
export function shareArguments({ is_concurrent, window }: Counter, now: number): number[] {
  if (is_concurrent) return [0, 1, 0, window.total]
  expire(window, now)
  const parts: number[] = []
  eachPart(window, (leaves_at, amount) => {
    parts.push(Math.round((leaves_at - window.length_ms) / window.part_ms) - 1, amount)
  })
  return [window.length_ms, parts.length / 2, ...parts]
}

/** Notes what others have used, as COUNT has answered. `isCounted`: it has counted the amounts of this call. */
export function noteOthers(
  checks: readonly Needed[],
  answer: readonly string[],
  { now, isCounted, hasApart }: { now: number; isCounted: boolean; hasApart: boolean },
): void {
  for (const [at, { counter, amount }] of checks.entries()) {
    const total = Number(answer[4 + 2 * at]) + (hasApart ? counter.apart : 0) - (isCounted ? amount : 0)
    expire(counter.window, now)
    counter.others = Math.max(0, total - counter.window.total)
    counter.others_until = counter.is_concurrent ? Number.POSITIVE_INFINITY : Number(answer[5 + 2 * at])
  }
}
