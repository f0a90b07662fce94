import { afterEach, describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { type Answer, hang, reset, startVendor, type Vendor, whole } from '../../test/kit/vendor.ts'
import { systemClock } from './clock.ts'
import { AddressRefused, createGuardedFetch, type GuardedFetchParts, type GuardedRequest } from './guarded-fetch.ts'

const vendors: Vendor[] = []
const servers: { stop(now: boolean): unknown }[] = []
afterEach(async () => {
  for (const vendor of vendors.splice(0)) await vendor.stop()
  for (const server of servers.splice(0)) await server.stop(true)
})

function vendorOf(...answers: Answer[]): Vendor {
  const vendor = startVendor(...answers)
  vendor.otherwise(whole('hello', { headers: { 'content-type': 'text/plain' } }))
  vendors.push(vendor)
  return vendor
}

const redirect = (location: string, status = 302) => whole('', { status, headers: { location } })

/** Loopback plays the public internet; all else is judged as it is. */
const asPublic = (...open: string[]): Partial<GuardedFetchParts> => ({ isPublic: (address) => open.includes(address) })
/** Every name leads to loopback. */
const toLoopback = { resolve: async () => ['127.0.0.1'] }

const guarded = (parts: Partial<GuardedFetchParts> = {}) => createGuardedFetch({ clock: systemClock, ...parts })
const get = (url: string, more: Partial<GuardedRequest> = {}): GuardedRequest => ({
  url,
  signal: new AbortController().signal,
  ...more,
})

async function refusal(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => 'was let through',
    (error) => error,
  )
  if (!(thrown instanceof AddressRefused)) throw new Error(`Not refused: ${thrown}`)
  return thrown.message
}
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error) => error.code ?? error.name,
  )

describe('the first address', () => {
  test('is rejected before anything is sent when it is not public, in any spelling', async () => {
    const vendor = vendorOf()
    const spellings = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0x7f000001',
      '0177.0.0.1',
      '127.0.0.1.',
      '%31%32%37.0.0.1',
      '１２７.0.0.1',
      '0',
      '0.0.0.0',
      '[::]',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      'localhost',
      'LOCALHOST',
    ]
    for (const host of spellings) {
      await refusal(guarded()(get(`http://${host}:${vendor.port}/`)))
    }
    expect(vendor.accepted()).toBe(0)
  })

  test('is rejected without a connection when it is private or a metadata service', async () => {
    const connected: string[] = []
    const fetchIt = guarded({
      connect: async (to) => {
        connected.push(to.address)
        return new Response('let through')
      },
    })
    for (const host of [
      '169.254.169.254',
      '10.0.0.1',
      '192.168.1.1',
      '100.100.100.200',
      '[fd00:ec2::254]',
      '[fe80::1]',
    ])
      await refusal(fetchIt(get(`http://${host}/latest/meta-data`)))
    expect(connected).toEqual([])
    await fetchIt(get('http://93.184.216.34:8080/'))
    await fetchIt(get('https://[2606:4700::1111]/'))
    expect(connected).toEqual(['93.184.216.34', '2606:4700::1111'])
  })

  test('is rejected when it is not an http(s) URL or contains a user name', async () => {
    for (const url of ['file:///etc/passwd', 'ftp://a.example/', 's3://bucket/key', 'data:,x', 'nothing', ''])
      await refusal(guarded()(get(url)))
    expect(await refusal(guarded()(get('http://user@a.example/')))).toContain('user name')
    expect(await refusal(guarded()(get('http://:secret@a.example/')))).not.toContain('secret')
  })

  test('appears in the message as given, not as resolved', async () => {
    const message = await refusal(guarded({ resolve: async () => ['10.1.2.3'] })(get('http://a.example/?key=secret')))
    expect(message).toBe('The host "a.example" does not resolve to a public address.')
  })

  test('is rejected when its name has a public and a private address', async () => {
    const connect = async () => new Response('let through')
    const resolve = async () => ['93.184.216.34', '127.0.0.1']
    await refusal(guarded({ resolve, connect })(get('http://a.example/')))
  })

  test('is rejected when the resolver returns something that is not an address', async () => {
    const resolve = async () => ['localhost']
    await refusal(guarded({ resolve })(get('http://a.example/')))
  })
})

describe('connecting', () => {
  test('uses the checked address and resolves the name once, so that rebinding is too late', async () => {
    const vendor = vendorOf()
    const asked: string[] = []
    // Public at first; whoever asked again would be sent elsewhere.
    const resolve = async (host: string) => {
      asked.push(host)
      return asked.length === 1 ? ['127.0.0.1'] : ['127.0.0.2']
    }
    const answer = await guarded({ resolve, ...asPublic('127.0.0.1') })(get(`http://a.example:${vendor.port}/x?y=1`))
    expect(await new Response(answer.body).text()).toBe('hello')
    expect(asked).toEqual(['a.example'])
    expect(vendor.requests[0]?.path).toBe('/x?y=1')
    expect(vendor.requests[0]?.headers.host).toBe(`a.example:${vendor.port}`)
    expect(answer.url).toBe(`http://a.example:${vendor.port}/x?y=1`)
  })

  test('rejects a name that becomes private between two requests, even with an open connection', async () => {
    const vendor = vendorOf()
    const answers = [['127.0.0.1'], ['10.0.0.1']]
    const resolve = async () => answers.shift() ?? []
    const fetchIt = guarded({ resolve, ...asPublic('127.0.0.1') })
    await new Response((await fetchIt(get(`http://a.example:${vendor.port}/`))).body).text()
    await refusal(fetchIt(get(`http://a.example:${vendor.port}/`)))
    expect(vendor.requests.length).toBe(1)
  })

  test('uses no connection twice', async () => {
    const vendor = vendorOf()
    const fetchIt = guarded({ ...toLoopback, ...asPublic('127.0.0.1') })
    for (let turn = 0; turn < 3; turn++)
      await new Response((await fetchIt(get(`http://a.example:${vendor.port}/`))).body).text()
    expect(vendor.accepted()).toBe(3)
  })

  test('tries the next address when the first refuses connections', async () => {
    const vendor = vendorOf()
    const fetchIt = guarded({ resolve: async () => ['127.0.0.9', '127.0.0.1'], ...asPublic('127.0.0.9', '127.0.0.1') })
    expect((await fetchIt(get(`http://a.example:${vendor.port}/`))).status).toBe(200)
    const nobody = guarded({ resolve: async () => ['127.0.0.9'], ...asPublic('127.0.0.9') })
    expect(await codeOf(nobody(get(`http://a.example:${vendor.port}/`)))).toMatch(/ConnectionRefused|ECONNREFUSED/)
  })

  test('does not retry a lost connection, because the request may have been received', async () => {
    const vendor = vendorOf(reset())
    const fetchIt = guarded({ resolve: async () => ['127.0.0.1', '127.0.0.1'], ...asPublic('127.0.0.1') })
    const failed = fetchIt(get(`http://a.example:${vendor.port}/?signature=secret`, { method: 'POST', body: '{}' }))
    const error = await failed.catch((thrown: Error) => thrown)
    expect(String(error)).toContain('a.example')
    expect(String(error)).not.toContain('secret')
    expect(vendor.requests.length).toBe(1)
  })

  test('fails with an error, not a rejection, when a name does not resolve', async () => {
    const resolve = async () => {
      throw Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' })
    }
    expect(await codeOf(guarded({ resolve })(get('http://a.example/')))).toBe('ENOTFOUND')
    expect(await codeOf(guarded({ resolve: async () => [] })(get('http://a.example/')))).toBe('ENOTFOUND')
  })
})

describe('certificates', () => {
  // Self-signed, of a name that nobody has: made for these tests only.
  const files = `${import.meta.dir}/../../test/fixtures/tls`
  const certificate = () => Bun.file(`${files}/files.example.com.crt`).text()
  async function secureServer() {
    const names: (string | null)[] = []
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: { key: await Bun.file(`${files}/files.example.com.key`).text(), cert: await certificate() },
      fetch(request) {
        names.push(request.headers.get('host'))
        return new Response('secure')
      },
    })
    servers.push(server)
    return { port: server.port, names }
  }
  const open = { ...toLoopback, ...asPublic('127.0.0.1') }

  test('untrusted ones are rejected', async () => {
    const { port, names } = await secureServer()
    expect(await codeOf(guarded(open)(get(`https://files.example.com:${port}/`)))).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
    expect(names).toEqual([])
  })

  test('are checked against the name, not the address', async () => {
    const { port, names } = await secureServer()
    const trusting = guarded({ ...open, ca: await certificate() })
    const answer = await trusting(get(`https://files.example.com:${port}/`))
    expect(await new Response(answer.body).text()).toBe('secure')
    expect(names).toEqual([`files.example.com:${port}`])
    expect(await codeOf(trusting(get(`https://other.example.com:${port}/`)))).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    expect(await codeOf(trusting(get(`https://127.0.0.1:${port}/`)))).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    expect(names.length).toBe(1)
  })

  test('a redirect from https to http is rejected', async () => {
    const connect = async () => Response.redirect('http://files.example.com/', 302)
    const message = await refusal(guarded({ ...open, connect })(get('https://files.example.com/')))
    expect(message).toContain('from https to http')
  })
})

describe('redirects', () => {
  const open = { ...toLoopback, ...asPublic('127.0.0.1') }
  /** Names lead to loopback, which is public here; addresses in figures other than that are as they are. */
  for (const target of [
    'http://127.0.0.2',
    'http://169.254.169.254',
    'http://0.0.0.0',
    'http://[::1]',
    'http://2130706434',
  ]) {
    test(`to ${target} are rejected`, async () => {
      const vendor = vendorOf()
      vendor.otherwise(redirect(`${target}:${vendor.port}/latest`))
      await refusal(guarded(open)(get(`http://a.example:${vendor.port}/`)))
      expect(vendor.requests.length).toBe(1)
    })
  }

  test('to another scheme or with a user name are rejected', async () => {
    const vendor = vendorOf(redirect('file:///etc/passwd'), redirect('http://user:secret@b.example/'))
    await refusal(guarded(open)(get(`http://a.example:${vendor.port}/`)))
    await refusal(guarded(open)(get(`http://a.example:${vendor.port}/`)))
  })

  test('to a name with a private address are rejected', async () => {
    const vendor = vendorOf()
    vendor.otherwise(redirect(`http://b.example:${vendor.port}/`))
    const resolve = async (host: string) => [host === 'a.example' ? '127.0.0.1' : '10.0.0.1']
    await refusal(guarded({ ...open, resolve })(get(`http://a.example:${vendor.port}/`)))
    expect(vendor.requests.length).toBe(1)
  })

  test('are followed up to the limit, relative ones too', async () => {
    const vendor = vendorOf(redirect('/b?c=1', 301), redirect('d', 307))
    const answer = await guarded(open)(get(`http://a.example:${vendor.port}/a`, { redirects: 2 }))
    expect(await new Response(answer.body).text()).toBe('hello')
    expect(answer.url).toBe(`http://a.example:${vendor.port}/d`)
    expect(vendor.requests.map(({ path }) => path)).toEqual(['/a', '/b?c=1', '/d'])
    vendor.otherwise(redirect('/again'))
    const failed = guarded(open)(get(`http://a.example:${vendor.port}/`, { redirects: 2 }))
    expect(await codeOf(failed)).toBe('ERR_TOO_MANY_REDIRECTS')
    expect(vendor.requests.length).toBe(6)
  })

  test('of a POST, or with a limit of 0, are returned unchanged', async () => {
    const vendor = vendorOf()
    vendor.otherwise(redirect('http://127.0.0.2/'))
    expect((await guarded(open)(get(`http://a.example:${vendor.port}/`, { redirects: 0 }))).status).toBe(302)
    const posted = get(`http://a.example:${vendor.port}/`, { method: 'POST', body: 'x' })
    expect((await guarded(open)(posted)).status).toBe(302)
    expect(vendor.requests.map(({ body }) => body)).toEqual(['', 'x'])
  })

  test('to another origin drop all but plain headers permanently', async () => {
    const vendor = vendorOf()
    vendor.answer(
      redirect('/same'),
      redirect(`http://b.example:${vendor.port}/`),
      redirect(`http://a.example:${vendor.port}/`),
    )
    const headers = { authorization: 'Bearer secret', 'x-goog-api-key': 'secret', cookie: 'a=b', range: 'bytes=5-' }
    await guarded(open)(get(`http://a.example:${vendor.port}/`, { headers }))
    const seen = vendor.requests.map(({ headers }) => [
      headers.authorization,
      headers['x-goog-api-key'],
      headers.cookie,
    ])
    const given = ['Bearer secret', 'secret', 'a=b']
    const none = [undefined, undefined, undefined]
    expect(seen).toEqual([given, given, none, none])
    expect(vendor.requests.map(({ headers }) => headers.range)).toEqual(new Array(4).fill('bytes=5-'))
  })
})

describe('private origins', () => {
  test('are allowed when they are listed, and only these', async () => {
    const vendor = vendorOf()
    const named = { private_origins: [vendor.origin] }
    expect((await guarded()(get(`${vendor.origin}/`, named))).status).toBe(200)
    await refusal(guarded()(get(`http://127.0.0.1:${vendor.port + 1}/`, named)))
    await refusal(guarded()(get(`http://localhost:${vendor.port}/`, named)))
    expect((await guarded()(get(`http://localhost:${vendor.port}/`, { private_origins: 'any' }))).status).toBe(200)
  })

  test('must not redirect to another private address', async () => {
    const vendor = vendorOf()
    vendor.otherwise(redirect(`http://127.0.0.2:${vendor.port}/`))
    await refusal(guarded()(get(`${vendor.origin}/`, { private_origins: [vendor.origin] })))
    expect(vendor.requests.length).toBe(1)
  })
})

describe('the end of a request', () => {
  const loopback = { private_origins: 'any' as const }

  test('comes when a host does not respond in time', async () => {
    const clock = manualClock()
    const vendor = vendorOf(hang())
    const failed = codeOf(guarded({ clock, answer_ms: 5000 })(get(vendor.origin, loopback)))
    await vendor.request()
    clock.advance(4999)
    expect(vendor.connections()).toBe(1)
    clock.advance(1)
    expect(await failed).toBe('ETIMEDOUT')
    await vendor.idle()
  })

  test('comes when a name does not resolve in time', async () => {
    const clock = manualClock()
    const failed = codeOf(
      guarded({ clock, answer_ms: 5000, resolve: () => new Promise(() => {}) })(get('http://a.example/')),
    )
    clock.advance(5000)
    expect(await failed).toBe('ETIMEDOUT')
  })

  test('comes with the abort reason before, during and after the response, and closes the connection', async () => {
    const reason = new Error('enough')
    const aborted = AbortSignal.abort(reason)
    expect(await guarded()(get('http://a.example/', { signal: aborted })).catch((error) => error)).toBe(reason)

    const vendor = vendorOf(hang(), endless)
    const waiting = new AbortController()
    const failed = guarded()(get(vendor.origin, { ...loopback, signal: waiting.signal })).catch((error) => error)
    await vendor.request()
    waiting.abort(reason)
    expect(await failed).toBe(reason)

    const reading = new AbortController()
    const answer = await guarded()(get(vendor.origin, { ...loopback, signal: reading.signal }))
    const reader = answer.body.getReader()
    expect((await reader.read()).done).toBe(false)
    reading.abort(reason)
    const rest = (async () => {
      while (!(await reader.read()).done);
    })()
    expect(await rest.catch((error) => error)).toBe(reason)
    await vendor.idle()
  })

  test('closes the connection when the body is abandoned', async () => {
    const vendor = vendorOf(endless)
    const answer = await guarded()(get(vendor.origin, loopback))
    await answer.body.cancel()
    await vendor.idle()
  })

  test('is an error when a body is silent for too long', async () => {
    const clock = manualClock()
    const vendor = vendorOf(async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf')
      await wire.aborted
    })
    const answer = await guarded({ clock, idle_ms: 7000 })(get(vendor.origin, loopback))
    const reader = answer.body.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('half')
    const next = codeOf(reader.read())
    while (clock.waiting() === 0) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(6999)
    expect(vendor.connections()).toBe(1)
    clock.advance(1)
    expect(await next).toBe('ETIMEDOUT')
    await vendor.idle()
  })

  test('is an error when a body is truncated', async () => {
    const vendor = vendorOf(async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf')
      wire.close()
    })
    const answer = await guarded()(get(vendor.origin, loopback))
    expect(await new Response(answer.body).text().catch(() => 'broke off')).toBe('broke off')
  })

  test('does not buffer a body that nobody reads', async () => {
    let sent = 0
    const vendor = vendorOf(async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n')
      while (!wire.isClosed()) {
        await Promise.race([wire.write(BLOCK), wire.aborted])
        sent += BLOCK.length
        progressed()
      }
    })
    let progressed = () => {}
    const answer = await guarded()(get(vendor.origin, loopback))
    // The server stands still once the sockets' buffers are full: nothing has moved for a while.
    await new Promise<void>((resolve) => {
      let timer = setTimeout(resolve, 150)
      progressed = () => {
        clearTimeout(timer)
        timer = setTimeout(resolve, 150)
      }
    })
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    await answer.body.cancel()
    await vendor.idle()
  })
})

const BLOCK = new Uint8Array(256 * 1024)
const endless: Answer = async (wire) => {
  await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n')
  while (!wire.isClosed()) await Promise.race([wire.write(BLOCK), wire.aborted])
}
