/** The behaviour of the connection to Valkey while the server is slow, down or overloaded, without a server. */
import { describe, expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { createValkey, ValkeyError } from './valkey.ts'

type Sent = { name: string; args: string[]; answer(value: unknown): void; fail(error: Error): void }
type FakeConnection = { sent: Sent[]; is_closed: boolean; lose(): void }

/** `opens`: how each attempt to connect ends; after the last one they succeed. */
function start({ opens = [] }: { opens?: (boolean | 'never')[] } = {}) {
  const clock = manualClock()
  const connections: FakeConnection[] = []
  let attempts = 0
  let logged = ''
  const write = (text: string) => {
    logged += text
  }
  const log = createLog({ clock, level: 'info', pretty: false, write })
  const valkey = createValkey({
    connect(onLost) {
      attempts++
      const connection: FakeConnection = { sent: [], is_closed: false, lose: onLost }
      return {
        async open() {
          const ending = opens.shift()
          if (ending === 'never') await new Promise(() => {})
          if (ending === false) throw new Error('connection refused with the password "sekret"')
          connections.push(connection)
        },
        send(name, args) {
          const { promise, resolve, reject } = Promise.withResolvers<unknown>()
          connection.sent.push({ name, args, answer: resolve, fail: reject })
          return promise
        },
        close() {
          connection.is_closed = true
          for (const { fail } of connection.sent) fail(new Error('closed'))
          onLost()
        },
      }
    },
    prefix: 'p',
    timeout_ms: 100,
    clock,
    log,
    random: () => 1,
  })
  const events = () => {
    log.flush()
    return logged
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).event as string)
  }
  const last = () => {
    const connection = connections.at(-1)
    if (!connection) throw new Error('there is no connection')
    return connection
  }
  const get = (key = 'k') => valkey.command('GET', { keys: [key] })
  return { clock, valkey, connections, last, get, events, attempts: () => attempts, logText: () => logged }
}

async function started(parts?: Parameters<typeof start>[0]) {
  const all = start(parts)
  await all.valkey.opened
  return all
}

/** Lets promises settle. */
const settle = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

async function faultOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (thrown) => thrown,
  )
  return error instanceof ValkeyError ? error.fault : String(error)
}

describe('a command', () => {
  it('is sent with the prefix before its keys, and returns the answer', async () => {
    const { valkey, last } = await started()
    const answer = valkey.command('SET', { keys: ['a'], args: ['v', 'PX', 10] })
    expect(last().sent.map(({ name, args }) => [name, ...args])).toEqual([['SET', 'p:a', 'v', 'PX', '10']])
    last().sent[0]?.answer('OK')
    expect(await answer).toBe('OK')
  })

  it('fails at its deadline, and not before', async () => {
    const { clock, get } = await started()
    let fault: string | undefined
    void faultOf(get()).then((found) => {
      fault = found
    })
    clock.advance(99)
    await settle()
    expect(fault).toBeUndefined()
    clock.advance(1)
    await settle()
    expect(fault).toBe('timeout')
  })

  it('has its own deadline, also where that is before or after that of others', async () => {
    const { clock, valkey, get } = await started()
    const ended: string[] = []
    const note = (name: string, promise: Promise<unknown>) => void faultOf(promise).then(() => ended.push(name))
    note('long', valkey.command('SET', { keys: ['a'], timeout_ms: 1_000 }))
    clock.advance(50)
    note('default', get())
    note('short', valkey.command('GET', { timeout_ms: 10 }))
    for (const [ms, expected] of [
      [10, ['short']],
      [89, ['short']],
      [1, ['short', 'default']],
      [849, ['short', 'default']],
      [1, ['short', 'default', 'long']],
    ] as const) {
      clock.advance(ms)
      await settle()
      expect(ended).toEqual([...expected])
    }
  })

  it('rejects with the error of the server, which is no failure of the connection', async () => {
    const { valkey, last, get } = await started()
    for (let n = 0; n < 5; n++) {
      const answer = get()
      last().sent[n]?.fail(new ValkeyError('reply', 'ERR wrong'))
      expect(await faultOf(answer)).toBe('reply')
    }
    expect(valkey.isAvailable()).toBe(true)
  })

  it('fails at once above the number of waiting commands, and not at it', async () => {
    const { clock, get, last } = await started()
    const waiting = Array.from({ length: 1024 }, (_, n) => get(`k${n}`))
    expect(last().sent).toHaveLength(1024)
    expect(await faultOf(get())).toBe('busy')
    last().sent[0]?.answer(null)
    await waiting[0]
    const next = get()
    expect(last().sent).toHaveLength(1025)
    clock.advance(100)
    expect(await faultOf(next)).toBe('timeout')
    expect((await Promise.all(waiting.slice(1).map(faultOf))).every((fault) => fault === 'timeout')).toBe(true)
  })

  it('fails at once above the size of the waiting commands together, and not alone', async () => {
    const { valkey, last } = await started()
    const half = 'x'.repeat(32 * 1024 * 1024)
    const set = (...values: string[]) => valkey.command('SET', { args: values })
    const first = set(half, half, 'x')
    expect(await faultOf(set('x'))).toBe('busy')
    last().sent[0]?.answer('OK')
    await first
    void set(half).catch(() => {})
    void set(half).catch(() => {})
    expect(last().sent).toHaveLength(3)
    expect(await faultOf(set('x'))).toBe('busy')
  })
})

describe('a script', () => {
  it('runs by its digest, and by its text where the server does not know it', async () => {
    const { valkey, last } = await started()
    const answer = valkey.script('return 1').run(['a', 'b'], [5])
    const digest = 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db'
    expect(last().sent[0]).toMatchObject({ name: 'EVALSHA', args: [digest, '2', 'p:a', 'p:b', '5'] })
    last().sent[0]?.fail(new ValkeyError('reply', 'NOSCRIPT No matching script.'))
    await settle()
    expect(last().sent[1]).toMatchObject({ name: 'EVAL', args: ['return 1', '2', 'p:a', 'p:b', '5'] })
    last().sent[1]?.answer(1)
    expect(await answer).toBe(1)
  })

  it('has one deadline for both attempts, and is not sent again after another error', async () => {
    const { clock, valkey, last } = await started()
    const answer = faultOf(valkey.script('return 1').run([], []))
    clock.advance(60)
    last().sent[0]?.fail(new ValkeyError('reply', 'NOSCRIPT No matching script.'))
    await settle()
    clock.advance(40)
    expect(await answer).toBe('timeout')
    const other = faultOf(valkey.script('return 1').run([], []))
    last().sent[2]?.fail(new ValkeyError('reply', 'ERR Error running script'))
    expect(await other).toBe('reply')
    expect(last().sent).toHaveLength(3)
  })
})

describe('a server that is down', () => {
  it('fails every command at once, and is tried again with backoff until it accepts the connection', async () => {
    const all = await started({ opens: [false, false, false, false, false, false, false] })
    const { clock, valkey, get, attempts } = all
    expect(valkey.isAvailable()).toBe(false)
    expect(await faultOf(get())).toBe('unavailable')
    expect(attempts()).toBe(1)
    for (const [at, ms] of [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000].entries()) {
      clock.advance(ms - 1)
      await settle()
      expect(attempts()).toBe(at + 1)
      clock.advance(1)
      await settle()
      expect(attempts()).toBe(at + 2)
    }
    expect(valkey.isAvailable()).toBe(true)
    expect(all.events()).toEqual(['valkey unavailable', 'valkey available'])
    expect(all.logText()).not.toContain('sekret')
  })

  it('is one whose connection takes too long', async () => {
    const { clock, valkey, events, attempts } = start({ opens: ['never'] })
    clock.advance(2_499)
    await settle()
    expect(events()).toEqual([])
    clock.advance(1)
    await valkey.opened
    expect(events()).toEqual(['valkey unavailable'])
    clock.advance(250)
    await settle()
    expect([attempts(), valkey.isAvailable()]).toEqual([2, true])
  })

  it('fails the commands that wait for an answer when the connection ends', async () => {
    const { valkey, last, get, clock, connections } = await started()
    const waiting = get()
    last().lose()
    expect(await faultOf(waiting)).toBe('lost')
    expect(valkey.isAvailable()).toBe(false)
    expect(await faultOf(get())).toBe('unavailable')
    clock.advance(250)
    await settle()
    expect(connections).toHaveLength(2)
    expect(valkey.isAvailable()).toBe(true)
  })

  it.each(['LOADING', 'READONLY', 'MASTERDOWN', 'NOAUTH'])('is one that answers %s', async (code) => {
    const { valkey, last, get } = await started()
    const answer = get()
    last().sent[0]?.fail(new ValkeyError('reply', `${code} not now`))
    expect(await faultOf(answer)).toBe('reply')
    expect(valkey.isAvailable()).toBe(false)
  })
})

describe('a server that does not answer', () => {
  it('counts as down after three commands in a row, and makes the next commands wait no more', async () => {
    const { clock, valkey, get, last } = await started()
    for (let n = 0; n < 3; n++) {
      expect(valkey.isAvailable()).toBe(true)
      const answer = faultOf(get())
      clock.advance(100)
      expect(await answer).toBe('timeout')
    }
    expect(valkey.isAvailable()).toBe(false)
    expect(last().is_closed).toBe(true)
    expect(await faultOf(get())).toBe('unavailable')
  })

  it('counts as up while it answers one command in three', async () => {
    const { clock, valkey, get, last } = await started()
    for (let n = 0; n < 9; n++) {
      const answer = faultOf(get())
      if (n % 3 === 2) last().sent[n]?.answer(null)
      else clock.advance(100)
      await answer
    }
    expect(valkey.isAvailable()).toBe(true)
  })

  it('counts as down after one command once it was reconnected, until it has answered one', async () => {
    const { clock, valkey, get, last } = await started()
    const timeOut = async () => {
      const answer = faultOf(get())
      clock.advance(100)
      await answer
    }
    for (let n = 0; n < 3; n++) await timeOut()
    clock.advance(250)
    await settle()
    expect(valkey.isAvailable()).toBe(true)
    await timeOut()
    expect(valkey.isAvailable()).toBe(false)
    clock.advance(500)
    await settle()
    const answer = get()
    last().sent[0]?.answer(null)
    await answer
    await timeOut()
    expect(valkey.isAvailable()).toBe(true)
  })
})

it('connects no more once it is closed', async () => {
  const { clock, valkey, get, attempts, last, events } = await started()
  const waiting = faultOf(get())
  valkey.close()
  expect(await waiting).toBe('lost')
  expect(last().is_closed).toBe(true)
  clock.advance(60_000)
  await settle()
  expect(attempts()).toBe(1)
  expect(events()).toEqual([])
  expect(clock.waiting()).toBe(0)
})
