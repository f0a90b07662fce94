/** A Valkey or Redis server that gateways share. A server that is slow or down makes nobody wait: commands fail quickly. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'

export type ValkeyConnection = {
  /** Resolves when the server accepts commands. */
  open(): Promise<void>
  /** Rejects with a `reply` error where the server answers with an error, and with another one where it does not answer. */
  send(name: string, args: string[]): Promise<unknown>
  /** Rejects the commands that wait for an answer. */
  close(): void
}

/**
 * `unavailable`: there is no connection. `timeout`: no answer in time; the command may still be executed. `busy`: too many
 * commands wait for an answer. `lost`: the connection ended before the answer; the command may have been executed.
 * `reply`: the server answered with this error.
 */
type ValkeyFault = 'unavailable' | 'timeout' | 'busy' | 'lost' | 'reply'

export class ValkeyError extends Error {
  readonly fault: ValkeyFault
  constructor(fault: ValkeyFault, message: string) {
    super(message)
    this.name = 'ValkeyError'
    this.fault = fault
  }
}

/** `keys`: get the prefix, and come before `args`. `timeout_ms`: default that of the configuration. */
type Command = { keys?: readonly string[]; args?: readonly (string | number)[]; timeout_ms?: number }

type ValkeyScript = {
  /** Runs the script: at once by its digest, which the server knows after the first time. Rejects with ValkeyError. */
  run(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>
}

export type Valkey = {
  /** The answer: text, a number, null or a list of them. Rejects with ValkeyError, at the latest at its deadline. */
  command(name: string, command: Command): Promise<unknown>
  script(lua: string): ValkeyScript
  /** Whether there is a connection. While there is none, every command fails at once. */
  isAvailable(): boolean
  /** Resolves when the first attempt to connect has ended, in either way. */
  opened: Promise<void>
  close(): void
}

type ValkeyParts = {
  /** `onLost` is called when the connection ends. Must not throw. */
  connect(onLost: () => void): ValkeyConnection
  prefix: string
  timeout_ms: number
  clock: Clock
  log: Log
  /** From 0 to 1, for the backoff. */
  random?: () => number
}

/** A connection has a limit of its own, which is shorter. */
const OPEN_MILLISECONDS = 2_500
const FIRST_RETRY_MILLISECONDS = 250
const LAST_RETRY_MILLISECONDS = 10_000
/** So many commands in a row without an answer end the connection: it may be half-open. One is enough after a reconnect. */
const MOST_TIMEOUTS = 3
/** Commands that wait for an answer. */
const MOST_PENDING = 1024
/** Of all of them together; one alone may be longer. */
const MOST_CHARACTERS = 64 * 1024 * 1024
/** Error replies of a server that cannot serve now. https://valkey.io/topics/protocol/, and `shared.*err` in server.c. */
const NOT_SERVING = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|NOAUTH)\b/

/** A command that was sent, and its caller. `size`: in characters. */
type Pending = { deadline: number; size: number; fail(error: ValkeyError): void }
type Line = { connection: ValkeyConnection; pending: Set<Pending>; characters: number }

export function createValkey({ connect, prefix, timeout_ms, clock, log, random = Math.random }: ValkeyParts): Valkey {
  /** The open connection. */
  let line: Line | undefined
  let timeouts = 0
  let retry_ms = FIRST_RETRY_MILLISECONDS
  let isReported = false
  let isClosed = false
  let cancelRetry = () => {}
  /** One timer checks all waiting commands. */
  let watch = { at: Number.POSITIVE_INFINITY, cancel: () => {} }

  async function open(): Promise<void> {
    let opened: Line | undefined
    const connection = connect(() => opened && lose(opened, 'the connection was closed'))
    const late = Promise.withResolvers<never>()
    const cancel = clock.after(OPEN_MILLISECONDS, () => late.reject(new ValkeyError('timeout', 'No connection.')))
    try {
      await Promise.race([connection.open(), late.promise])
      if (isClosed) return connection.close()
      opened = { connection, pending: new Set(), characters: 0 }
      line = opened
    } catch {
      connection.close()
      return fail('the server cannot be reached, or refuses the connection, TLS, the user or the password')
    } finally {
      cancel()
    }
    if (isReported) log.info('valkey available')
    isReported = false
  }

  function fail(reason: string): void {
    if (isClosed) return
    if (!isReported) log.warn('valkey unavailable', { reason })
    isReported = true
    // Between half of the time and all of it, so that gateways do not reconnect together.
    cancelRetry = clock.after(Math.ceil(retry_ms * (0.5 + random() / 2)), () => void open())
    retry_ms = Math.min(retry_ms * 2, LAST_RETRY_MILLISECONDS)
  }

  function lose(lost: Line, reason: string): void {
    if (line !== lost) return
    line = undefined
    timeouts = MOST_TIMEOUTS - 1
    lost.connection.close()
    for (const { fail } of lost.pending) fail(new ValkeyError('lost', 'The connection to Valkey was lost.'))
    fail(reason)
  }

  function watchUntil(deadline: number): void {
    if (deadline >= watch.at) return
    watch.cancel()
    watch = { at: deadline, cancel: clock.after(Math.max(0, deadline - clock.steady()), failLate) }
  }

  /** Fails the commands whose deadline has passed. */
  function failLate(): void {
    watch.at = Number.POSITIVE_INFINITY
    const now = clock.steady()
    let next = Number.POSITIVE_INFINITY
    for (const one of line?.pending ?? []) {
      if (one.deadline > now) next = Math.min(next, one.deadline)
      else one.fail(new ValkeyError('timeout', 'Valkey did not answer in time.'))
    }
    if (line && timeouts >= MOST_TIMEOUTS) lose(line, 'the server does not answer in time')
    else watchUntil(next)
  }

  function answered(): void {
    timeouts = 0
    retry_ms = FIRST_RETRY_MILLISECONDS
  }

  function send(name: string, args: string[], deadline: number): Promise<unknown> {
    const current = line
    if (!current) return Promise.reject(new ValkeyError('unavailable', 'Valkey is not connected.'))
    const size = args.reduce((sum, { length }) => sum + length, 0)
    const { pending } = current
    if (pending.size >= MOST_PENDING || (pending.size > 0 && current.characters + size > MOST_CHARACTERS)) {
      return Promise.reject(new ValkeyError('busy', 'Too many commands wait for an answer of Valkey.'))
    }
    return new Promise((resolve, reject) => {
      let isLate = false
      const one: Pending = {
        deadline,
        size,
        fail(error) {
          if (isLate) return
          isLate = true
          // It stays pending until it is answered: a server that hangs gets no more commands than may wait.
          one.deadline = Number.POSITIVE_INFINITY
          if (error.fault === 'timeout') timeouts++
          reject(error)
        },
      }
      pending.add(one)
      current.characters += size
      const end = () => {
        pending.delete(one)
        current.characters -= size
      }
      current.connection.send(name, args).then(
        (answer) => {
          end()
          if (!isLate) answered()
          resolve(answer)
        },
        (error) => {
          end()
          const isReply = error instanceof ValkeyError && error.fault === 'reply'
          if (isReply && NOT_SERVING.test(error.message)) lose(current, `the server answers ${codeOf(error)}`)
          else if (isReply && !isLate) answered()
          else if (!isReply) lose(current, 'the connection was closed')
          reject(isReply ? error : new ValkeyError('lost', 'The connection to Valkey was lost.'))
        },
      )
      watchUntil(deadline)
    })
  }

  const prefixed = (keys: readonly string[]) => keys.map((key) => `${prefix}:${key}`)

  return {
    command: (name, { keys = [], args = [], timeout_ms: own = timeout_ms }) =>
      send(name, [...prefixed(keys), ...args.map(String)], clock.steady() + own),
    script(lua) {
      const digest = createHash('sha1').update(lua).digest('hex')
      return {
        async run(keys, args) {
          const deadline = clock.steady() + timeout_ms
          const rest = [String(keys.length), ...prefixed(keys), ...args.map(String)]
          try {
            return await send('EVALSHA', [digest, ...rest], deadline)
          } catch (error) {
            if (!(error instanceof ValkeyError && error.message.startsWith('NOSCRIPT'))) throw error
            return send('EVAL', [lua, ...rest], deadline)
          }
        },
      }
    },
    isAvailable: () => line !== undefined,
    opened: open(),
    close() {
      isClosed = true
      cancelRetry()
      watch.cancel()
      if (line) lose(line, 'the gateway stops')
    },
  }
}

const codeOf = ({ message }: ValkeyError): string => message.split(' ', 1)[0] ?? ''
