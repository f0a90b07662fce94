import { describe, expect, test } from 'bun:test'
import type { ThreeDLimits } from '../config/schema/task-schema.ts'
import type { Provider } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { ThreeDRequest } from '../spec/three-d-request.ts'
import { catalogueModel } from './catalogue.ts'
import { applyThreeDLimits } from './three-d-limits.ts'

const provider = { id: 'p', kind: 'test', threeD: {} } as Provider
const modelOf = (three_d: ThreeDLimits) =>
  catalogueModel({
    id: 'p/m',
    config: { families: ['3d-generation'], three_d },
    targets: [{ provider, model: 'm' }],
    created: 0,
    when_retired: 'refuse',
  })

const orderOf = (limits: ThreeDLimits, request: Partial<ThreeDRequest> = { prompt: 'a cat' }) =>
  applyThreeDLimits(modelOf(limits), { model: 'm', ...request })

function errorOf(limits: ThreeDLimits, request: Partial<ThreeDRequest>) {
  try {
    orderOf(limits, request)
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, param: error.detail.param, message: error.message }
    throw error
  }
  return undefined
}

const URL_A = 'https://files.example/a.png'

describe('defaults', () => {
  test('a model without defaults generates GLB, and leaves the rest to its provider', () => {
    expect(orderOf({})).toEqual({ model: 'p/m', prompt: 'a cat', format: 'glb' })
  })

  test("the format is GLB if the model has it, else the first one, else the operator's", () => {
    const formatOf = (format: NonNullable<ThreeDLimits['format']>) => orderOf({ format }).format
    expect(formatOf({ values: ['obj', 'glb'] })).toBe('glb')
    expect(formatOf({ values: ['stl', 'obj'] })).toBe('stl')
    expect(formatOf({ values: ['obj', 'glb'], default: 'obj' })).toBe('obj')
  })

  test("the operator's defaults take precedence, and an only value is a default", () => {
    const limits: ThreeDLimits = {
      texture: { default: true },
      pbr: { values: [false] },
      target_polycount: { minimum: 100, default: 900 },
    }
    expect(orderOf(limits)).toMatchObject({ texture: true, pbr: false, target_polycount: 900 })
  })

  test("the client's fields are forwarded, except its webhook", () => {
    const requested = {
      prompt: 'a',
      seed: 3,
      negative_prompt: 'b',
      metadata: { meshy: { topology: 'quad' } },
      texture: true,
    }
    expect(orderOf({}, { ...requested, callback_url: 'https://a.example' })).toEqual({
      ...requested,
      model: 'p/m',
      format: 'glb',
    })
  })
})

describe('inputs', () => {
  test('one of prompt, image and images is required', () => {
    for (const request of [{}, { prompt: ' ' }, { images: [] }, { texture: true }]) {
      expect(errorOf({}, request)).toEqual({
        code: 'missing_required_parameter',
        param: 'prompt',
        message: 'One of "prompt", "image", "images" is required by the model "p/m".',
      })
    }
    for (const request of [{ prompt: 'a' }, { image: URL_A }, { images: [URL_A] }]) {
      expect(errorOf({}, request)).toBeUndefined()
    }
  })

  test('only inputs that the model accepts are named as missing', () => {
    expect(errorOf({ image: 'no', images: 0 }, {})?.message).toBe('"prompt" is required by the model "p/m".')
    expect(errorOf({ prompt: 'no', images: 0 }, {})).toMatchObject({
      param: 'image',
      message: '"image" is required by the model "p/m".',
    })
  })

  test('a prompt may be required, optional or none', () => {
    expect(errorOf({ prompt: 'required' }, { image: URL_A })).toMatchObject({
      code: 'missing_required_parameter',
      param: 'prompt',
    })
    expect(errorOf({ prompt: 'required' }, { image: URL_A, prompt: 'a' })).toBeUndefined()
    expect(errorOf({ prompt: 'no' }, { prompt: 'a' })).toMatchObject({
      code: 'unsupported_parameter',
      param: 'prompt',
    })
    expect(orderOf({ prompt: 'no' }, { prompt: '', image: URL_A })).toEqual({
      model: 'p/m',
      format: 'glb',
      image: URL_A,
    })
  })

  test('an image may be required, optional or none; several images satisfy the requirement', () => {
    expect(errorOf({ image: 'required' }, { prompt: 'a' })).toMatchObject({ param: 'image' })
    expect(errorOf({ image: 'required' }, { images: [URL_A] })).toBeUndefined()
    expect(errorOf({ image: 'no' }, { image: URL_A })).toMatchObject({
      code: 'unsupported_parameter',
      param: 'image',
    })
  })

  test('image and images are the same input and exclude each other', () => {
    expect(errorOf({}, { image: URL_A, images: [URL_A] })).toMatchObject({ code: 'invalid_value', param: 'images' })
  })

  test('images are accepted up to the limit of the model', () => {
    expect(errorOf({ images: 2 }, { images: [URL_A, URL_A] })).toBeUndefined()
    expect(errorOf({ images: 2 }, { images: [URL_A, URL_A, URL_A] })).toMatchObject({
      code: 'invalid_value',
      param: 'images',
      message: '"images" may have at most 2 items for the model "p/m", not 3.',
    })
    expect(errorOf({ images: 0 }, { images: [URL_A] })).toMatchObject({
      code: 'unsupported_parameter',
      param: 'images',
    })
    expect(errorOf({}, { images: Array(16).fill(URL_A) })).toBeUndefined()
    expect(errorOf({}, { images: Array(17).fill(URL_A) })).toMatchObject({ param: 'images' })
  })

  test.each(['ftp://a', 'data:image/png;base64,a', 'not base64!', 'http://['])(
    'an image is a URL, a data URI or base64, not %p',
    (value) => {
      expect(errorOf({}, { image: value })).toMatchObject({ code: 'invalid_value', param: 'image' })
      expect(errorOf({}, { images: [URL_A, value] })).toMatchObject({ code: 'invalid_value', param: 'images[1]' })
    },
  )

  test('texts are counted in characters', () => {
    for (const field of ['prompt', 'negative_prompt'] as const) {
      const request = (text: string) => ({ prompt: 'a', [field]: text })
      expect(errorOf({ prompt_characters: 3 }, request('😀😀😀'))).toBeUndefined()
      expect(errorOf({ prompt_characters: 3 }, request('😀😀😀😀'))).toMatchObject({
        code: 'invalid_value',
        param: field,
      })
      expect(errorOf({}, request('a'.repeat(32_000)))).toBeUndefined()
      expect(errorOf({}, request('a'.repeat(32_001)))).toMatchObject({ param: field })
    }
  })
})

describe('output options', () => {
  test('the format is one that the model generates', () => {
    expect(orderOf({ format: { values: ['glb', 'fbx'] } }, { prompt: 'a', format: 'fbx' }).format).toBe('fbx')
    expect(errorOf({ format: { values: ['glb', 'fbx'] } }, { prompt: 'a', format: 'obj' })).toEqual({
      code: 'invalid_value',
      param: 'format',
      message: '"format" must be one of "glb", "fbx" for the model "p/m", not "obj".',
    })
    expect(errorOf({}, { prompt: 'a', format: 'obj' })?.message).toBe(
      '"format" must be "glb" for the model "p/m", not "obj".',
    )
  })

  test.each(['texture', 'pbr'] as const)('%s is one that the model supports', (field) => {
    expect(errorOf({ [field]: { values: [false] } }, { prompt: 'a', [field]: true })).toMatchObject({
      code: 'invalid_value',
      param: field,
    })
    expect(orderOf({ [field]: { values: [true] } }, { prompt: 'a', [field]: true })[field]).toBe(true)
    expect(orderOf({}, { prompt: 'a', [field]: false })[field]).toBe(false)
  })

  test('PBR maps require a texture; a default for them is dropped', () => {
    expect(errorOf({}, { prompt: 'a', texture: false, pbr: true })).toMatchObject({
      code: 'invalid_value',
      param: 'pbr',
    })
    expect(orderOf({ pbr: { default: true } }, { prompt: 'a', texture: false }).pbr).toBe(false)
    expect(orderOf({}, { prompt: 'a', texture: true, pbr: true })).toMatchObject({ texture: true, pbr: true })
  })

  test('STL has no texture: a request for one is rejected, a default is dropped', () => {
    const limits: ThreeDLimits = {
      format: { values: ['glb', 'stl'] },
      texture: { default: true },
      pbr: { default: true },
    }
    for (const field of ['texture', 'pbr'] as const) {
      const refused = errorOf(limits, { prompt: 'a', format: 'stl', [field]: true })
      expect(refused).toMatchObject({ code: 'invalid_value', param: field })
    }
    expect(orderOf(limits, { prompt: 'a', format: 'stl' })).toMatchObject({ texture: false, pbr: false })
    expect(orderOf(limits, { prompt: 'a' })).toMatchObject({ texture: true, pbr: true })
  })

  test('polygons are accepted within the range, on both sides', () => {
    const limits: ThreeDLimits = { target_polycount: { minimum: 100, maximum: 300 } }
    for (const target_polycount of [100, 300]) {
      expect(orderOf(limits, { prompt: 'a', target_polycount }).target_polycount).toBe(target_polycount)
    }
    for (const target_polycount of [99, 301]) {
      expect(errorOf(limits, { prompt: 'a', target_polycount })).toMatchObject({
        code: 'invalid_value',
        param: 'target_polycount',
      })
    }
    expect(orderOf(limits).target_polycount).toBeUndefined()
    expect(orderOf({}, { prompt: 'a', target_polycount: 1 }).target_polycount).toBe(1)
  })

  test.each<[keyof ThreeDLimits, Partial<ThreeDRequest>]>([
    ['target_polycount', { target_polycount: 100 }],
    ['negative_prompt', { negative_prompt: 'rain' }],
    ['seed', { seed: 0 }],
  ])('%s is accepted only if the model supports it', (field, requested) => {
    expect(errorOf({ [field]: false }, { prompt: 'a', ...requested })).toMatchObject({
      code: 'unsupported_parameter',
      param: field,
    })
    expect(errorOf({ [field]: false }, { prompt: 'a' })).toBeUndefined()
    expect(errorOf({}, { prompt: 'a', ...requested })).toBeUndefined()
  })
})
