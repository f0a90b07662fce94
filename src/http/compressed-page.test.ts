import { describe, expect, it } from 'bun:test'
import { acceptsCoding, compressedPage } from './compressed-page.ts'

describe('acceptsCoding', () => {
  it.each(['gzip', 'GZIP', 'br, gzip;q=0.1', 'x-gzip', '*', 'br;q=1.0, *;q=0.5', 'deflate,gzip ; q=1'])(
    'is true for "%s"',
    (header) => expect(acceptsCoding(header, 'gzip')).toBe(true),
  )

  it.each([null, '', 'identity', 'br', 'gzip;q=0', 'gzip;q=0.000, *', '*;q=0', 'gzipped', 'gzip;q=none'])(
    'is false for "%s"',
    (header) => expect(acceptsCoding(header, 'gzip')).toBe(false),
  )
})

describe('compressedPage', () => {
  it('is written once, and compressed only for clients that accept it', async () => {
    let written = 0
    const page = compressedPage(() => {
      written++
      return `{"text":"${'Grüße '.repeat(1000)}"}`
    }, 'application/json')
    const plain = await page(null)
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.headers.get('vary')).toBe('accept-encoding')
    const text = await plain.text()
    for (let call = 0; call < 2; call++) {
      const answer = await page('gzip, br')
      expect(answer.headers.get('content-encoding')).toBe('gzip')
      expect(answer.headers.get('content-type')).toBe('application/json')
      const bytes = new Uint8Array(await answer.arrayBuffer())
      expect(bytes.length).toBeLessThan(text.length / 10)
      expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(text)
    }
    expect(written).toBe(1)
  })
})
