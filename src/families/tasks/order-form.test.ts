import { describe, expect, test } from 'bun:test'
import { fieldsOfForm } from '../../http/form-fields.ts'
import type { FormPart } from '../../http/multipart.ts'
import { GatewayError } from '../../spec/error.ts'
import { ORDER_FORM, parseVideo } from './parse-order.ts'

const text = (...fields: [string, string][]): FormPart[] => fields.map(([name, value]) => ({ name, value }))
const file = (name: string, bytes: number[], content_type = ''): FormPart => ({
  name,
  value: { bytes: new Uint8Array(bytes), content_type, filename: 'a' },
})
/** As plain objects, whatever their prototype. */
const fieldsOf = (parts: FormPart[]) => JSON.parse(JSON.stringify(fieldsOfForm(parts, ORDER_FORM)))

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

function refusalOf(parts: FormPart[]) {
  try {
    parseVideo(fieldsOfForm(parts, ORDER_FORM))
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, param: error.detail.param }
    throw error
  }
  return undefined
}

describe('text fields', () => {
  test('get the JSON type of the field; seconds stay as they are', () => {
    const parts = text(['duration', '8'], ['n', '2'], ['seed', '0'], ['audio_enable', 'true'], ['seconds', '8'])
    expect(fieldsOf(parts)).toEqual({ duration: 8, n: 2, seed: 0, audio_enable: true, seconds: '8' })
  })

  test('stay text if they do not parse, and are rejected as in JSON', () => {
    for (const [name, value] of [
      ['duration', 'long'],
      ['n', '0x2'],
      ['seed', ' 1'],
      ['audio_enable', 'yes'],
      ['metadata', '[]'],
      ['metadata', '7'],
    ] as [string, string][]) {
      expect(refusalOf(text(['model', 'm'], [name, value]))).toEqual({ code: 'invalid_type', param: name })
    }
    expect(refusalOf(text(['model', 'm'], ['metadata', '{']))).toEqual({ code: 'invalid_value', param: 'metadata' })
  })

  test('count as absent if they are empty', () => {
    expect(fieldsOf(text(['prompt', ''], ['size', '']))).toEqual({})
    expect(refusalOf(text(['model', '']))).toEqual({ code: 'missing_required_parameter', param: 'model' })
  })
})

test('lists are repeated fields, with or without brackets', () => {
  expect(fieldsOf(text(['images', 'AAAA'], ['images', 'BBBB']))).toEqual({ images: ['AAAA', 'BBBB'] })
  expect(fieldsOf(text(['images[]', 'AAAA']))).toEqual({ images: ['AAAA'] })
  expect(fieldsOf([file('images', PNG), file('images[]', PNG)]).images).toHaveLength(2)
})

test('objects are JSON, or separate fields', () => {
  expect(fieldsOf(text(['metadata', '{"fal":{"loop":true}}']))).toEqual({ metadata: { fal: { loop: true } } })
  const parts = text(['metadata[fal][loop]', 'true'], ['metadata[fal][mode]', 'pro'], ['metadata[x]', '1'])
  expect(fieldsOf(parts)).toEqual({ metadata: { fal: { loop: 'true', mode: 'pro' }, x: '1' } })
  expect(parseVideo(fieldsOfForm([...text(['model', 'm']), ...parts], ORDER_FORM)).metadata).toHaveProperty('fal.mode')
  expect(fieldsOf(text(['input_reference[image_url]', 'https://x.test/']))).toEqual({
    input_reference: { image_url: 'https://x.test/' },
  })
})

test('a name cannot reach the prototype', () => {
  fieldsOfForm(
    text(['metadata[__proto__][polluted]', '1'], ['__proto__[polluted]', '1'], ['constructor[x]', '1']),
    ORDER_FORM,
  )
  expect(({} as { polluted?: string }).polluted).toBeUndefined()
})

test.each<[string, FormPart[], string]>([
  ['a field', text(['prompt', 'a'], ['prompt', 'b']), 'prompt'],
  ['a deep field', text(['metadata[a]', '1'], ['metadata[a]', '2']), 'metadata[a]'],
  ['a field that is text and object at once', text(['metadata[a]', '1'], ['metadata[a][b]', '2']), 'metadata[a][b]'],
  ['a form without end', text([`metadata${'[a]'.repeat(8)}`, '1']), `metadata${'[a]'.repeat(8)}`],
])('%s twice is rejected', (_, parts, param) => {
  expect(refusalOf(parts)).toEqual({ code: 'invalid_value', param })
})

describe('files', () => {
  test('become data URIs with the type of their bytes', () => {
    expect(fieldsOf([file('image', PNG, 'text/plain')])).toEqual({ image: 'data:image/png;base64,iVBORw0KGgo=' })
    expect(fieldsOf([file('video', [1, 2, 3], 'video/x')])).toEqual({ video: 'data:video/x;base64,AQID' })
    expect(fieldsOf([file('image', [0])])).toEqual({ image: 'data:application/octet-stream;base64,AA==' })
  })

  test('count as absent if none was chosen', () => {
    const none: FormPart = { name: 'image', value: { bytes: new Uint8Array(), content_type: '', filename: '' } }
    expect(fieldsOf([none])).toEqual({})
  })

  test('are accepted only in file fields', () => {
    expect(refusalOf([file('prompt', PNG)])).toEqual({ code: 'invalid_type', param: 'prompt' })
  })

  test('as a reference become the first frame, or the video to start from', () => {
    const of = (bytes: number[]) =>
      parseVideo(fieldsOfForm([...text(['model', 'm']), file('input_reference', bytes)], ORDER_FORM))
    expect(of(PNG)).toEqual({ model: 'm', image: 'data:image/png;base64,iVBORw0KGgo=' })
    const mp4 = [0, 0, 0, 12, ...Buffer.from('ftypisom')]
    expect(of(mp4).video).toStartWith('data:video/mp4;base64,')
  })
})
