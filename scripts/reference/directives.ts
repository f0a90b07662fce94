/** The directives of the sandbox, as lines of the manual's list: their ranges are those of the code. */
import { DIRECTIVES, type Rule } from '../../packages/sandbox/src/directives.ts'
import { ORDER_DIRECTIVES } from '../../packages/sandbox/src/order-directives.ts'
import { TEXT_DIRECTIVES } from '../../packages/sandbox/src/text-directives.ts'
import { code, codes } from './table.ts'

const ALL = { ...DIRECTIVES, ...TEXT_DIRECTIVES, ...ORDER_DIRECTIVES }

const MEANINGS: Record<keyof typeof ALL, string> = {
  status: 'the request is rejected as by a vendor with this HTTP status',
  retry_after: 'with `status` or `limit`: the vendor asks to wait so many seconds',
  first_ms: 'milliseconds before the response or its first chunk',
  usage: 'no usage (except of images), so the gateway estimates it',
  tokens: 'the response has so many tokens; with `n`, all choices together at most 100000',
  interval_ms: 'milliseconds between two chunks',
  cut_after: 'the connection is lost after so many chunks',
  hang_after: 'silence after so many chunks, until the client leaves',
  error_after: 'the vendor reports an error after so many chunks',
  finish: 'the response ends with this `finish_reason`',
  lose: 'the order is accepted, and the connection is lost before the response',
  queue_ms: 'milliseconds in the queue, counted from the order',
  render_ms: 'milliseconds of rendering after that, at least',
  limit: 'so many first polls get status 429',
  garbage: 'so many further polls get an unreadable response',
  fail: 'it runs, and then fails with this code',
  no_output: 'it runs, and then succeeds without a file',
  hang: 'it never ends',
  quick: 'a tiny file in a fraction of a second',
}

export const directiveRows = (): string[][] =>
  Object.entries(MEANINGS).map(([name, meaning]) => [
    code(name),
    `${requestsWith(name)}; ${valuesOf(name, ALL[name as keyof typeof ALL])}`,
    meaning,
  ])

function requestsWith(name: string): string {
  if (!Object.hasOwn(DIRECTIVES, name)) return 'tasks'
  if (!Object.hasOwn(TEXT_DIRECTIVES, name)) return 'chat'
  return Object.hasOwn(ORDER_DIRECTIVES, name) ? 'all' : 'all but tasks'
}

function valuesOf(name: string, rule: Rule): string {
  if (name === 'fail') return '[a fail code](fail-codes.md)'
  return 'values' in rule ? codes([...rule.values]) : `${rule.minimum}–${rule.maximum}`
}
