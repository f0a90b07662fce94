/** A router over targets that do what a test says, with a clock that stands still. */
import type { Attempt } from '../../src/calls/routing/attempt.ts'
import { boundsOf } from '../../src/calls/routing/bounds.ts'
import type { AttemptPolicy } from '../../src/calls/routing/outcome.ts'
import { createRouter } from '../../src/calls/routing/router.ts'
import type { RoutingConfig } from '../../src/config/schema/routing-schema.ts'
import { createLog } from '../../src/kit/log.ts'
import type { Target } from '../../src/providers/provider.ts'
import { GatewayError } from '../../src/spec/error.ts'
import { manualClock } from './clock.ts'

export const failed = new GatewayError('bad_upstream_response', 'It failed.', { upstream_status: 500 })
export const unreachable = new GatewayError('upstream_unreachable', 'No connection.')
export const notAccepted = new GatewayError('upstream_unreachable', 'No connection.', { accepted: 'no' })
export const refused = new GatewayError('upstream_auth', 'A bad key.', { upstream_status: 401 })
export const limited = (retry_after?: number) =>
  new GatewayError('rate_limit_exceeded', 'Slow down.', {
    upstream_status: 429,
    ...(retry_after === undefined ? {} : { retry_after }),
  })

type Result = unknown
type Options = {
  policy?: AttemptPolicy
  signal?: AbortSignal
  routing?: RoutingConfig
  observed?: boolean
  affinity?: () => number | undefined
  fallback?: boolean
  /** When it arrived; default: now. */
  arrived?: number
}

/** A router over targets `a`, `b`, `c`, in order unless the options say otherwise. */
export function setUp(options: Partial<Target>[] = [{}, {}, {}], random = () => 0) {
  const clock = manualClock()
  /** Of one model: the same object for each call. */
  const usual: RoutingConfig = {}
  let logged = ''
  const log = createLog({
    clock,
    level: 'info',
    pretty: false,
    write: (text) => {
      logged += text
    },
  })
  const router = createRouter({ clock, log, random })
  const targets = options.map((option, index): Target => {
    const id = option.key === undefined ? 'abc'.charAt(index) : 'v'
    return { provider: { id, kind: 'test' }, model: 'm', priority: index, ...option }
  })
  const nameOf = ({ provider, key }: Target) => key ?? provider.id
  const tried: string[] = []
  /** The attempts that have failed or were given up. */
  const failures: Attempt[] = []
  /** The targets of the calls that are open. */
  const ends: ((error?: unknown) => void)[] = []

  /** One call; `answers` of a target: what it does, `ok` by default. */
  async function call(answers: Record<string, (signal: AbortSignal) => Result> = {}, given: Options = {}) {
    const { policy = 'until_answered', signal = new AbortController().signal, routing = usual, observed = true } = given
    tried.length = 0
    return await router
      .attempt(
        targets,
        {
          settings: routing,
          bounds: boundsOf(routing, given.arrived ?? clock.steady()),
          token_id: 't',
          signal,
          is_stream: true,
          policy,
          is_observed: observed,
          is_hedged: true,
          has_fallback: given.fallback ?? false,
          affinity: () => given.affinity?.(),
          attemptStarted: ({ target }) => void tried.push(nameOf(target)),
          attemptFailed: (attempt) => void failures.push(attempt),
          serving: (attempt) => void ends.push((error) => attempt.end(error)),
        },
        {
          async sendTo(target, own) {
            const result = await answers[nameOf(target)]?.(own ?? signal)
            if (result instanceof Error) throw result
            return nameOf(target)
          },
        },
      )
      .catch((error: unknown) => error)
  }
  /** The targets of so many calls that are answered and end at once. */
  async function serve(calls: number, given: Options = {}): Promise<string> {
    let all = ''
    for (let i = 0; i < calls; i++) {
      all += await call({}, given)
      ends.pop()?.()
    }
    return all
  }
  const finish = () => ends.splice(0).forEach((end) => void end())
  const logLines = () => {
    log.flush()
    return logged
  }
  return { call, serve, finish, ends, tried, failures, clock, router, targets, logged: logLines }
}

export const always = (error: unknown) => () => error

/** Lets everything run that waits for no clock. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}
