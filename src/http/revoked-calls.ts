/** Ends the open requests of tokens that have become invalid: a stream must not outlive the token that opened it. */
import type { Log } from '../kit/log.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'

/** A request whose response is not yet written. */
export type OpenRequest = {
  readonly caller: Caller
  readonly request_id: string
  /** Ends it: a response that has begun ends with this error. */
  abort(reason: GatewayError): void
}

type RevokedCallsParts = {
  open: readonly (() => Iterable<OpenRequest>)[]
  isValid(caller: Caller): boolean | Promise<boolean>
  settings: { end_revoked_calls: boolean }
  log: Log
}

/** Concurrent look-ups, each one read by hash: more would only wait for the store. */
const LOOK_UPS = 50

/** The result looks through the open requests. A call during a look causes one more look after it. */
export function createRevokedCalls({ open, isValid, settings, log }: RevokedCallsParts): () => Promise<void> {
  const all = () => open.flatMap((some) => [...some()])
  let looking: Promise<void> | undefined
  let isRequested = false

  async function look(): Promise<void> {
    const invalid = new Set<Caller>()
    const asked: { caller: Caller; answer: Promise<boolean> }[] = []
    const settle = async () => {
      for (const { caller, answer } of asked.splice(0)) if (!(await answer)) invalid.add(caller)
    }
    for (const caller of callersOf(all())) {
      const answer = isValid(caller)
      if (answer === false) invalid.add(caller)
      if (typeof answer !== 'boolean') asked.push({ caller, answer })
      if (asked.length >= LOOK_UPS) await settle()
    }
    await settle()
    if (invalid.size === 0) return
    // Collected first: ending a request removes it from the open ones.
    for (const one of all().filter(({ caller }) => invalid.has(caller))) {
      log.info('call ended: its token is no longer valid', {
        request_id: one.request_id,
        token_id: one.caller.token_id,
      })
      one.abort(
        new GatewayError(
          'invalid_api_key',
          'The API key of this request was revoked or replaced or has expired, or its project is not active.',
        ),
      )
    }
  }

  async function lookAgain(): Promise<void> {
    while (isRequested) {
      isRequested = false
      await look()
    }
  }

  return () => {
    if (!settings.end_revoked_calls) return Promise.resolve()
    isRequested = true
    looking ??= lookAgain().finally(() => {
      looking = undefined
    })
    return looking
  }
}

function callersOf(open: Iterable<OpenRequest>): Set<Caller> {
  const callers = new Set<Caller>()
  for (const { caller } of open) if (caller.token_id !== '') callers.add(caller)
  return callers
}
