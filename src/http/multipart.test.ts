import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../test/kit/clock.ts'
import { GatewayError } from '../spec/error.ts'
import { type FormFile, MOST_FIELD_BYTES, readJsonOrForm } from './multipart.ts'

const clock = manualClock()
const limits = { max_bytes: 2_000, seconds: 60, clock }

const requestOf = (body: BodyInit, headers: Record<string, string> = {}) =>
  new Request('http://gatehouse.test/', { method: 'POST', body, headers })

const FORM = { 'content-type': 'multipart/form-data; boundary=b' }
const field = (name: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

async function refusalOf(request: Request, within = limits) {
  const thrown = await readJsonOrForm(request, within).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof GatewayError) return { code: thrown.code, message: thrown.message }
  throw new Error('It was not refused.', { cause: thrown })
}

describe('a form', () => {
  test('is decoded to its parts in order, repeated names included', async () => {
    const form = new FormData()
    form.append('prompt', 'Katze 🐈')
    form.append('images[]', 'one')
    form.append('images[]', 'two')
    form.append('input_reference', new File([new Uint8Array([1, 2, 0xff])], 'a.png', { type: 'image/png' }))
    expect(await readJsonOrForm(requestOf(form), limits)).toEqual({
      kind: 'form',
      parts: [
        { name: 'prompt', value: 'Katze 🐈' },
        { name: 'images[]', value: 'one' },
        { name: 'images[]', value: 'two' },
        {
          name: 'input_reference',
          value: { bytes: new Uint8Array([1, 2, 0xff]), content_type: 'image/png', filename: 'a.png' },
        },
      ],
    })
  })

  test('has fields of so many bytes together at most, and files of any size', async () => {
    const within = { ...limits, max_bytes: 3 * MOST_FIELD_BYTES }
    const form = new FormData()
    const half = 'x'.repeat(MOST_FIELD_BYTES / 2)
    form.append('a', half)
    form.append('b', half)
    form.append('file', new File([half, half, 'x'], 'a.bin'))
    expect(await readJsonOrForm(requestOf(form), within)).toMatchObject({ kind: 'form' })
    form.append('c', 'x')
    const { code, message } = await refusalOf(requestOf(form), within)
    expect([code, message]).toEqual(['request_too_large', expect.stringContaining(`${MOST_FIELD_BYTES} bytes`)])
  })

  test('may have a file field without a file, as browsers send it', async () => {
    const empty = '--b\r\nContent-Disposition: form-data; name="f"; filename=""\r\n\r\n\r\n--b--\r\n'
    const { parts } = (await readJsonOrForm(requestOf(empty, FORM), limits)) as { parts: unknown }
    expect(parts).toEqual([
      { name: 'f', value: { bytes: new Uint8Array(), content_type: expect.any(String), filename: '' } },
    ])
  })

  test.each([
    ['', FORM['content-type'], 'ends early'],
    [field('a', '1'), FORM['content-type'], 'ends early'],
    ['hello', FORM['content-type'], 'ends early'],
    [`${field('a', '1')}--b--\r\n`, 'multipart/form-data', 'names no boundary'],
  ])('%j is rejected with the reason', async (body, type, message) => {
    const refusal = await refusalOf(requestOf(body, { 'content-type': type }))
    expect(refusal.code).toBe('invalid_value')
    expect(refusal.message).toContain(message)
  })

  test('may have as many bytes as any body, and not one more', async () => {
    const frame = `${field('a', '')}--b--\r\n`.length
    const whole = `${field('a', 'x'.repeat(2_000 - frame))}--b--\r\n`
    expect(whole).toHaveLength(2_000)
    expect((await readJsonOrForm(requestOf(whole, FORM), limits)).kind).toBe('form')
    expect((await refusalOf(requestOf(`${whole} `, FORM))).code).toBe('request_too_large')
  })

  test('has names that contain what looks like another parameter', async () => {
    const part = (parameters: string) => `--b\r\nContent-Disposition: form-data; ${parameters}\r\n\r\n1\r\n--b--\r\n`
    const read = async (parameters: string) => {
      const posted = await readJsonOrForm(requestOf(part(parameters), FORM), limits)
      return posted.kind === 'form'
        ? posted.parts.map(({ name, value }) => [name, (value as Partial<FormFile>).filename])
        : []
    }
    expect(await read('filename="a; name=model"; name="file"')).toEqual([['file', 'a; name=model']])
    expect(await read('name="a; filename=b"')).toEqual([['a; filename=b', undefined]])
    expect(await read(`name="file"; filename="a; filename*=utf-8''b"`)).toEqual([['file', "a; filename*=utf-8''b"]])
  })

  test('has at most 1,000 parts', async () => {
    const large = { ...limits, max_bytes: 1_000_000 }
    const form = (parts: number) => requestOf(`${field('a', '1').repeat(parts)}--b--\r\n`, FORM)
    expect(await readJsonOrForm(form(1_000), large)).toMatchObject({ kind: 'form' })
    expect(readJsonOrForm(form(1_001), large)).rejects.toMatchObject({ code: 'invalid_value' })
  })

  test.each<[string, string, object]>([
    ['an escaped name', 'form-data; name="a%22b"; filename="c%0D%0A.png"', { name: 'a"b', filename: 'c\r\n.png' }],
    ['a name with backslashes', 'form-data; name="a\\"b"; filename="c\\\\d"', { name: 'a"b', filename: 'c\\d' }],
    ['names without quotation marks', 'form-data; name=a; filename=b.png', { name: 'a', filename: 'b.png' }],
    [
      'a name beyond ASCII',
      `form-data; name="a"; filename*=utf-8''na%C3%AFve.png`,
      { name: 'a', filename: 'naïve.png' },
    ],
    [
      'a name that is coded wrongly',
      `form-data; name="a"; filename*=UTF-8'en'%E0.png`,
      { name: 'a', filename: '%E0.png' },
    ],
    ['the names in another order and case', 'Form-Data; FileName="b"; Name="a"', { name: 'a', filename: 'b' }],
  ])('may have %s', async (_, disposition, { name, filename }: { name?: string; filename?: string }) => {
    const body = `before\r\n--b  \r\ncontent-type: image/png\r\ncontent-disposition: ${disposition}\r\n\r\nx\r\n--b--after`
    const { parts } = (await readJsonOrForm(requestOf(body, FORM), limits)) as { parts: unknown }
    expect(parts).toMatchObject([{ name, value: { filename, content_type: 'image/png' } }])
  })

  test('keeps line breaks and beginnings of its boundary in what is sent', async () => {
    const content = '\r\n--\r\n--a\r\n\r\n-b\r\n'
    expect(await readJsonOrForm(requestOf(`${field('a', content)}--b--`, FORM), limits)).toEqual({
      kind: 'form',
      parts: [{ name: 'a', value: content }],
    })
  })

  test.each([
    ['--b\r\n\r\n1\r\n--b--', 'content-disposition'],
    ['--b\r\ncontent-disposition: form-data\r\n\r\n1\r\n--b--', 'content-disposition'],
    ['--b\r\ncontent-disposition: form-data; name="a"\r\n1\r\n--b--', 'headers of a part'],
    [`--b\r\nx: ${'y'.repeat(9_000)}\r\n\r\n1\r\n--b--`, 'headers of a part'],
  ])('without a name, or with headers that do not end, is rejected', async (body, message) => {
    const refusal = await refusalOf(requestOf(body, FORM)).catch(() => undefined)
    const large = await readJsonOrForm(requestOf(body, FORM), { ...limits, max_bytes: 20_000 }).catch(
      (thrown) => thrown,
    )
    expect(refusal?.code === 'request_too_large' || refusal?.code === 'invalid_value').toBe(true)
    expect(String(large)).toContain(message)
  })

  test('must arrive in time', async () => {
    const body = new ReadableStream({ start() {} })
    const init = { method: 'POST', body, headers: FORM, duplex: 'half' } as RequestInit
    const refused = refusalOf(new Request('http://gatehouse.test/', init))
    clock.advance(60_000)
    expect((await refused).code).toBe('request_timeout')
  })
})

test('reads JSON as JSON, and rejects other types with the two accepted ones', async () => {
  const json = requestOf('{"a":1}', { 'content-type': 'application/json; charset=utf-8' })
  expect(await readJsonOrForm(json, limits)).toEqual({ kind: 'json', value: { a: 1 } })
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/mixed; boundary=b']) {
    const refusal = await refusalOf(requestOf('a=1', { 'content-type': type }))
    expect(refusal.code).toBe('unsupported_media_type')
    expect(refusal.message).toContain(`application/json or multipart/form-data, not "${type}"`)
  }
})
