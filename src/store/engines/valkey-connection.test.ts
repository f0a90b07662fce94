/** The connection to Valkey: what the client of Bun does with servers that misbehave, and with a real one. */
import { afterEach, describe, expect, it } from 'bun:test'
import { type FakeValkey, fakeValkey, HELLO, hasValkey, startValkey } from '../../../test/kit/valkey.ts'
import { systemClock } from '../../kit/clock.ts'
import { createLog } from '../../kit/log.ts'
import { createValkey, type ValkeyConnection, ValkeyError } from './valkey.ts'
import { connectValkey } from './valkey-connection.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

function connectTo(url: string): { connection: ValkeyConnection; lost: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const connection = connectValkey(url, resolve)
  closing.push(() => connection.close())
  return { connection, lost: promise }
}

async function fake(answer: Parameters<typeof fakeValkey>[0]): Promise<FakeValkey> {
  const server = await fakeValkey(answer)
  closing.push(server.stop)
  return server
}

describe('a connection', () => {
  it('rejects where no server listens', async () => {
    const server = await fakeValkey(() => {})
    server.stop()
    await expect(connectTo(server.url).connection.open()).rejects.toThrow()
  })

  it('rejects where the server does not accept the password, without repeating it', async () => {
    const server = await fake((socket) => socket.write('-WRONGPASS invalid username-password pair\r\n'))
    const { connection } = connectTo(server.url.replace('//', '//user:sekret@'))
    const error = await connection.open().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(Error)
    expect(Bun.inspect(error)).not.toContain('sekret')
    expect(server.received[0]).toContain('sekret')
  })

  it('rejects where the server accepts the connection and says nothing', async () => {
    const server = await fake(() => {})
    await expect(connectTo(server.url).connection.open()).rejects.toThrow()
  })

  it('sends the commands of one turn together, and assigns the answers in order', async () => {
    const server = await fake((socket, n) => socket.write(n === 0 ? HELLO : '$1\r\na\r\n:2\r\n_\r\n'))
    const { connection } = connectTo(server.url)
    await connection.open()
    const answers = ['x', 'y', 'z'].map((key) => connection.send('GET', [key]))
    expect(await Promise.all(answers)).toEqual(['a', 2, null])
    expect(server.received).toHaveLength(2)
  })

  it.each([
    ['something else than the protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['an impossible length', '$99999999999999\r\nabc'],
  ])('ends with a server that sends %s', async (_, garbage) => {
    const server = await fake((socket, n) => socket.write(n === 0 ? HELLO : garbage))
    const { connection, lost } = connectTo(server.url)
    await connection.open()
    const error = await connection.send('GET', ['a']).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(ValkeyError)
    await lost
    await expect(connection.send('GET', ['a'])).rejects.toThrow()
  })

  it('rejects all waiting commands when the server ends it within an answer', async () => {
    const server = await fake((socket, n) => (n === 0 ? socket.write(HELLO) : socket.end('$10\r\nabc')))
    const { connection, lost } = connectTo(server.url)
    await connection.open()
    const both = await Promise.allSettled([connection.send('GET', ['a']), connection.send('GET', ['b'])])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await lost
  })

  it('rejects the waiting commands when it is closed', async () => {
    const server = await fake((socket, n) => n === 0 && socket.write(HELLO))
    const { connection } = connectTo(server.url)
    await connection.open()
    const waiting = connection.send('GET', ['a'])
    connection.close()
    await expect(waiting).rejects.toThrow()
  })

  it('returns the error of the server without the arguments of the command', async () => {
    const text = "-ERR unknown command 'GTE', with args beginning with: 'secret text' \r\n"
    const server = await fake((socket, n) => socket.write(n === 0 ? HELLO : text))
    const { connection } = connectTo(server.url)
    await connection.open()
    const error = await connection.send('GTE', ['secret text']).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ValkeyError)
    expect(String(error)).toBe("ValkeyError: ERR unknown command 'GTE'")
  })
})

describe.skipIf(!hasValkey)('with a real server', () => {
  async function start() {
    const server = await startValkey()
    closing.push(server.stop)
    let logged = ''
    const write = (text: string) => {
      logged += text
    }
    const log = createLog({ clock: systemClock, level: 'info', pretty: false, write })
    const parts = { prefix: 'p', timeout_ms: 1_000, clock: systemClock, log }
    const valkey = createValkey({ ...parts, connect: (onLost) => connectValkey(server.url, onLost) })
    closing.push(valkey.close)
    await valkey.opened
    const logText = () => {
      log.flush()
      return logged
    }
    return { server, valkey, logText }
  }

  /** Resolves when the condition holds; the test's own time limit ends it otherwise. */
  const until = async (holds: () => boolean) => {
    while (!holds()) await Bun.sleep(5)
  }

  it('stores, returns, expires and deletes', async () => {
    const { valkey } = await start()
    const text = 'ü €\u0000"\n'
    expect(await valkey.command('SET', { keys: ['a'], args: [text, 'PX', 60_000] })).toBe('OK')
    expect(await valkey.command('GET', { keys: ['a'] })).toBe(text)
    expect(await valkey.command('KEYS', { args: ['*'] })).toEqual(['p:a'])
    expect(Number(await valkey.command('PTTL', { keys: ['a'] }))).toBeGreaterThan(50_000)
    expect(await valkey.command('DEL', { keys: ['a'] })).toBe(1)
    expect(await valkey.command('GET', { keys: ['a'] })).toBeNull()
  })

  it('runs scripts, also after the server has forgotten them', async () => {
    const { valkey } = await start()
    const script = valkey.script("return {redis.call('INCRBY', KEYS[1], ARGV[1]), KEYS[1]}")
    expect(await script.run(['n'], [2])).toEqual([2, 'p:n'])
    expect(await script.run(['n'], [2])).toEqual([4, 'p:n'])
    await valkey.command('SCRIPT', { args: ['FLUSH'] })
    expect(await script.run(['n'], [2])).toEqual([6, 'p:n'])
  })

  it('reconnects to a server that was restarted', async () => {
    const { server, valkey, logText } = await start()
    await server.stop()
    await until(() => !valkey.isAvailable())
    const again = await startValkey(server.port)
    closing.push(again.stop)
    await until(valkey.isAvailable)
    expect(await valkey.command('GET', { keys: ['a'] })).toBeNull()
    expect(logText().match(/"event":"[^"]+"/g)).toEqual(['"event":"valkey unavailable"', '"event":"valkey available"'])
    expect(logText()).not.toContain('canary')
  })

  it('counts a frozen server as down, and returns to it', async () => {
    const { server, valkey } = await start()
    const resume = server.freeze()
    const all = Array.from({ length: 3 }, () => valkey.command('GET', { keys: ['a'] }).catch((thrown) => thrown.fault))
    expect(await Promise.all(all)).toEqual(['timeout', 'timeout', 'timeout'])
    expect(valkey.isAvailable()).toBe(false)
    resume()
    await until(valkey.isAvailable)
    expect(await valkey.command('GET', { keys: ['a'] })).toBeNull()
  })
})
