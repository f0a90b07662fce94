import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../spec/error.ts'
import { parseVideo } from './parse-order.ts'

function refusalOf(body: unknown) {
  try {
    parseVideo(body)
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, param: error.detail.param, message: error.message }
    throw error
  }
  return undefined
}

test('keeps known fields, drops null and unknown ones', () => {
  const body = { model: 'm', prompt: 'p', seed: null, duration: 8, hats: 3, metadata: { v: { a: null } } }
  expect(parseVideo(body)).toEqual({ model: 'm', prompt: 'p', duration: 8, metadata: { v: { a: null } } })
  expect(parseVideo(JSON.parse('{"model":"m","__proto__":{"prompt":"x"}}')).prompt).toBeUndefined()
})

test.each([[null], ['text'], [[]], [7]])('rejects the body %j', (body) => {
  expect(refusalOf(body)).toMatchObject({ code: 'invalid_type' })
})

test.each([
  [{}, 'missing_required_parameter', 'model'],
  [{ model: null }, 'missing_required_parameter', 'model'],
  [{ model: 1 }, 'invalid_type', 'model'],
  [{ model: 'm', prompt: ['p'] }, 'invalid_type', 'prompt'],
  [{ model: 'm', duration: '8' }, 'invalid_type', 'duration'],
  [{ model: 'm', seconds: true }, 'invalid_type', 'seconds'],
  [{ model: 'm', audio_enable: 'true' }, 'invalid_type', 'audio_enable'],
  [{ model: 'm', seed: 1.5 }, 'invalid_type', 'seed'],
  [{ model: 'm', seed: -1 }, 'invalid_value', 'seed'],
  [{ model: 'm', seed: 4_294_967_296 }, 'invalid_value', 'seed'],
  [{ model: 'm', n: 0 }, 'invalid_value', 'n'],
  [{ model: 'm', image: '' }, 'invalid_value', 'image'],
  [{ model: 'm', images: 'AAAA' }, 'invalid_type', 'images'],
  [{ model: 'm', images: ['AAAA', 7] }, 'invalid_type', 'images[1]'],
  [{ model: 'm', metadata: [] }, 'invalid_type', 'metadata'],
  [{ model: 'm', callback_url: {} }, 'invalid_type', 'callback_url'],
])('rejects %j with %s of %s', (body, code, param) => {
  expect(refusalOf(body)).toMatchObject({ code, param })
})

test('accepts the limits of the seed', () => {
  for (const seed of [0, 4_294_967_295]) expect(parseVideo({ model: 'm', seed }).seed).toBe(seed)
})

describe('input_reference', () => {
  const parse = (input_reference: unknown, more: object = {}) => parseVideo({ model: 'm', input_reference, ...more })

  test('accepts an image, as an object or as text', () => {
    const image = 'https://x.test/a.png'
    expect(parse(image)).toEqual({ model: 'm', image })
    expect(parse({ image_url: image, file_id: null })).toEqual({ model: 'm', image })
    expect(parse('data:video/mp4;base64,AAAA')).toEqual({ model: 'm', video: 'data:video/mp4;base64,AAAA' })
    expect(parse(null)).toEqual({ model: 'm' })
  })

  test.each([
    [{ file_id: 'file_1' }, {}, 'unsupported_parameter', 'input_reference.file_id'],
    [{}, {}, 'missing_required_parameter', 'input_reference.image_url'],
    [{ image_url: 7 }, {}, 'invalid_type', 'input_reference.image_url'],
    [7, {}, 'invalid_type', 'input_reference'],
    ['', {}, 'invalid_value', 'input_reference'],
    ['AAAA', { image: 'BBBB' }, 'invalid_value', 'input_reference'],
  ])('rejects %j with %j as %s of %s', (reference, more, code, param) => {
    expect(refusalOf({ model: 'm', input_reference: reference, ...more })).toMatchObject({ code, param })
  })
})
