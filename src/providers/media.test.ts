import { afterEach, describe, expect, test } from 'bun:test'
import { failure, startVendor, type Vendor, whole } from '../../test/kit/vendor.ts'
import { systemClock } from '../kit/clock.ts'
import { createGuardedFetch } from '../kit/guarded-fetch.ts'
import { GatewayError } from '../spec/error.ts'
import { createMedia, createRequestMedia } from './media.ts'

const vendors: Vendor[] = []
afterEach(async () => {
  for (const vendor of vendors.splice(0)) await vendor.stop()
})
const vendorOf = (...answers: Parameters<typeof startVendor>) => {
  const vendor = startVendor(...answers)
  vendors.push(vendor)
  return vendor
}

/** A PNG of one pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const png = Buffer.from(PNG, 'base64')
const mp4 = Buffer.from('\0\0\0\x18ftypisom\0\0\0\0mp42isom and so on')
const { signal } = new AbortController()

/** Every host name resolves to loopback, which stands in for the public internet. */
const open = createGuardedFetch({
  clock: systemClock,
  resolve: async () => ['127.0.0.1'],
  isPublic: (address) => address === '127.0.0.1',
})
const media = createMedia({ guardedFetch: open, max_bytes: 100_000 })
const at = (vendor: Vendor, path = '/a.png') => `http://files.example.com:${vendor.port}${path}`
const served = (bytes: Buffer) => (wire: { write(bytes: Uint8Array): Promise<void> }) =>
  wire.write(Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes.length}\r\n\r\n`), bytes]))

async function faultOf(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.then(
    () => 'nothing was thrown',
    (error) => error,
  )
  if (!(thrown instanceof GatewayError)) throw new Error(`No GatewayError: ${thrown}`)
  expect(thrown.code).toBe('input_media_invalid')
  return thrown
}

describe('reading media', () => {
  test('returns the same bytes and their actual type for each form', async () => {
    const vendor = vendorOf()
    vendor.otherwise(served(png))
    const forms = [
      PNG,
      PNG.replace(/=+$/, ''),
      PNG.replaceAll('+', '-').replaceAll('/', '_'),
      `${PNG.slice(0, 40)}\r\n${PNG.slice(40)}\n`,
      `data:image/png;base64,${PNG}`,
      `data:image/jpeg;name=a.jpg;base64,${PNG}`,
      `DATA:;BASE64,${encodeURIComponent(PNG)}`,
      at(vendor),
    ]
    for (const form of forms) {
      const found = await media.read(form, signal)
      expect([form.slice(0, 30), found.content_type, Buffer.from(found.bytes).equals(png)]).toEqual([
        form.slice(0, 30),
        'image/png',
        true,
      ])
    }
  })

  test('accepts exactly the limit and rejects one byte more, for each form', async () => {
    for (const [length, fits] of [
      [100_000, true],
      [100_001, false],
    ] as const) {
      const bytes = Buffer.concat([png, Buffer.alloc(length - png.length)])
      const vendor = vendorOf()
      vendor.otherwise(served(bytes))
      for (const form of [bytes.toString('base64'), at(vendor)]) {
        if (fits) expect((await media.read(form, signal)).bytes.length).toBe(length)
        else
          expect((await faultOf(media.read(form, signal, 'image'))).message).toContain('larger than the 100000 bytes')
      }
    }
  })

  test('rejects a compressed response, and accepts content-encoding: identity', async () => {
    const encoded = (coding: string) => (wire: { write(bytes: Uint8Array): Promise<void> }) => {
      const head = `HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\ncontent-length: ${png.length}\r\n\r\n`
      return wire.write(Buffer.concat([Buffer.from(head), png]))
    }
    const vendor = vendorOf(encoded('identity'), encoded('gzip'))
    expect((await media.read(at(vendor), signal)).content_type).toBe('image/png')
    expect((await faultOf(media.read(at(vendor), signal, 'image'))).message).toBe(
      '"image" could not be read: its host sent it compressed (gzip), which was not asked for.',
    )
  })

  test('passes an abort on unchanged', async () => {
    const reason = new Error('enough')
    expect(await media.read('http://a.example/', AbortSignal.abort(reason)).catch((error) => error)).toBe(reason)
  })
})

describe('checking media', () => {
  test('accepts a medium that fits its field, and fetches only the beginning of a URL', async () => {
    const vendor = vendorOf()
    vendor.otherwise((wire) => served(wire.request.path === '/a.mp4' ? mp4 : png)(wire))
    await media.check(
      { image: at(vendor), last_image: PNG, images: [PNG, at(vendor)], video: at(vendor, '/a.mp4') },
      signal,
    )
    await media.check({}, signal)
    expect(vendor.requests.map(({ headers }) => headers.range)).toEqual(new Array(3).fill('bytes=0-63'))
  })

  test('does not wait for the rest of a large file', async () => {
    const vendor = vendorOf(async (wire) => {
      await wire.write('HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n')
      await wire.write(Buffer.concat([png, Buffer.alloc(1000)]))
      await wire.aborted
    })
    await media.check({ image: at(vendor) }, signal)
    await vendor.idle()
  })

  const wrong: [what: string, value: string, message: string][] = [
    ['invalid base64', 'a cat', '"image" could not be read: it is neither an http(s) URL, nor a data URI, nor base64.'],
    ['incomplete base64', 'AAAAA', 'nor base64'],
    ['nothing', ' ', '"image" could not be read: it is empty.'],
    ['an unknown kind', btoa('just a text'), '"image" could not be read: it is no png, jpeg'],
    ['a data URI that is not in base64', 'data:image/png,abc', 'has to be in base64'],
    ['a data URI without data', 'data:image/png;base64', 'no whole data URI'],
    ['another scheme', 'file:///etc/passwd', '"image" could not be fetched: the address begins with "file:"'],
    [
      'loopback',
      'http://127.0.0.2/',
      '"image" could not be fetched: the host "127.0.0.2" does not resolve to a public address.',
    ],
    ['metadata', 'http://169.254.169.254/latest', 'does not resolve to a public address.'],
    [
      'a video in place of an image',
      mp4.toString('base64'),
      '"image" is of the type video/mp4, where one of png, jpeg',
    ],
  ]
  for (const [what, value, message] of wrong) {
    test(`rejects ${what}, with the reason`, async () => {
      const error = await faultOf(media.check({ image: value }, signal))
      expect(error.message).toContain(message)
      expect(error.detail.param).toBe('image')
    })
  }

  test('names the field of the error, also within a list', async () => {
    expect((await faultOf(media.check({ images: [PNG, 'a cat'] }, signal))).detail.param).toBe('images[1]')
    expect((await faultOf(media.check({ video: PNG }, signal))).message).toContain('"video" is of the type image/png')
  })

  test('reports the status of the host, but not the URL with its signature', async () => {
    const vendor = vendorOf(failure(404), whole(''))
    const url = at(vendor, '/a.png?signature=secret')
    const missing = await faultOf(media.check({ image: url }, signal))
    expect(missing.message).toBe('"image" could not be fetched: its host answered with HTTP 404.')
    expect((await faultOf(media.check({ image: url }, signal))).message).toContain('sent nothing')
    await vendor.stop()
    const unreachable = await faultOf(media.check({ image: url }, signal))
    expect(unreachable.message).toContain('no whole answer came from its host')
    expect(unreachable.message).not.toContain('secret')
  })

  test('distinguishes temporary failures from permanent ones', async () => {
    const rows: [status: number, retry_after: number | undefined][] = [
      [404, undefined],
      [403, undefined],
      [408, 5],
      [429, 5],
      [500, 5],
      [503, 5],
    ]
    for (const [status, retry_after] of rows) {
      const error = await faultOf(media.check({ image: at(vendorOf(failure(status))) }, signal))
      expect([status, error.detail.retry_after]).toEqual([status, retry_after])
    }
    const missing = vendorOf()
    await missing.stop()
    expect((await faultOf(media.check({ image: at(missing) }, signal))).detail.retry_after).toBe(5)
    expect((await faultOf(media.check({ image: 'http://127.0.0.2/' }, signal))).detail.retry_after).toBeUndefined()
  })

  test('reports an unknown host name', async () => {
    const nameless = createGuardedFetch({
      clock: systemClock,
      resolve: async () => {
        throw Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' })
      },
    })
    const error = await faultOf(createMedia({ guardedFetch: nameless }).check({ image: 'http://a.example/' }, signal))
    expect(error.message).toBe('"image" could not be fetched: its host name is not known.')
  })
})

describe('the media of one chat request', () => {
  /** A reader of media of 100 bytes each that counts its concurrent reads. */
  function counted() {
    const state = { reads: 0, open: 0, most: 0 }
    return {
      state,
      async read() {
        state.reads++
        state.most = Math.max(state.most, ++state.open)
        await Promise.resolve()
        state.open--
        return { bytes: new Uint8Array(100), content_type: 'image/png' }
      },
    }
  }
  const readAll = (reader: ReturnType<typeof counted>, { count, most }: { count: number; most?: number }) => {
    const one = createRequestMedia(reader, most)
    return Promise.all(Array.from({ length: count }, (_, index) => one.read('x', signal, `messages[${index}]`)))
  }

  test('are accepted up to a total size; above it nothing more is read', async () => {
    const reader = counted()
    expect(await readAll(reader, { count: 10, most: 1_000 })).toHaveLength(10)
    expect(reader.state).toEqual({ reads: 10, open: 0, most: 4 })
    const other = counted()
    const fault = await faultOf(readAll(other, { count: 100, most: 999 }))
    expect(fault.message).toContain('larger than the 999 bytes allowed together')
    expect(other.state.reads).toBeLessThan(15)
  })

  test('are at most a thousand', async () => {
    const reader = counted()
    expect(await readAll(reader, { count: 1_000 })).toHaveLength(1_000)
    expect((await faultOf(readAll(reader, { count: 1_001 }))).detail.param).toBe('messages[1000]')
  })
})
