import { describe, expect, it } from 'bun:test'
import { GatewayError } from '../../../spec/error.ts'
import { fieldsIn, withPath } from './predict.ts'

const FORM = {
  fields: {
    prompt: 'instances[0].prompt',
    image: 'instances[0].image',
    images: 'instances[0].referenceImages',
    n: 'parameters.sampleCount',
    format: 'parameters.outputOptions.mimeType',
  },
  media: ['image', 'images'],
  refused: ['parameters.storageUri'],
}
const read = (instance: object, parameters: unknown = {}) => fieldsIn({ instances: [instance], parameters }, FORM)

describe('fieldsIn', () => {
  it('reads the members of the instance and of the parameters', () => {
    expect(read({ prompt: 'x', other: 1 }, { sampleCount: 2, other: 1, outputOptions: { mimeType: 'a/b' } })).toEqual({
      prompt: 'x',
      n: 2,
      format: 'a/b',
    })
    expect(read({ prompt: null }, { sampleCount: null, storageUri: null, outputOptions: null })).toEqual({})
    expect(fieldsIn({ instances: [{ prompt: 'x' }], parameters: null }, FORM)).toEqual({ prompt: 'x' })
  })

  it.each([
    [{ bytesBase64Encoded: 'AA-_', mimeType: 'image/png' }, 'data:image/png;base64,AA+/'],
    [{ inlineData: { data: 'AAAA', mimeType: 'image/png' } }, 'data:image/png;base64,AAAA'],
    [{ encodedVideo: 'AAAA', encoding: 'video/mp4' }, 'data:video/mp4;base64,AAAA'],
    [{ bytesBase64Encoded: 'AAAA' }, 'AAAA'],
    [{ uri: 'https://a.example/x' }, 'https://a.example/x'],
    [{ gcsUri: 'gs://a/x' }, 'gs://a/x'],
    [{ fileUri: 'https://a.example/x' }, 'https://a.example/x'],
  ])('reads the medium %j', (image, value) => {
    expect(read({ image })).toEqual({ image: value })
    expect(read({ referenceImages: [image, { image, referenceType: 'asset' }] })).toEqual({ images: [value, value] })
  })

  it.each([
    [{ image: {} }, 'instances[0].image'],
    [{ image: 'AAAA' }, 'instances[0].image'],
    [{ referenceImages: [{ uri: 'https://a.example/x' }, {}] }, 'instances[0].referenceImages[1]'],
  ])('throws for %j with its path', (instance, param) => {
    expect(() => read(instance)).toThrow(expect.objectContaining({ detail: { param } }))
  })

  it('throws for a parameter that is not supported', () => {
    expect(() => read({}, { storageUri: 'gs://a' })).toThrow('"parameters.storageUri" is not supported: leave it out.')
  })
})

describe('withPath', () => {
  const errorAt = (param: string | undefined) =>
    new GatewayError('invalid_value', `"${param}" must be 1.`, param === undefined ? {} : { param })

  it.each([
    ['n', 'parameters.sampleCount'],
    ['images[1]', 'instances[0].referenceImages[1]'],
    ['model', 'model'],
    ['constructor', 'constructor'],
  ])('names %s as %s', (param, path) => {
    expect(withPath(errorAt(param), FORM.fields)).toMatchObject({
      message: `"${path}" must be 1.`,
      detail: { param: path },
    })
  })

  it('returns other errors unchanged', () => {
    const other = new Error('x')
    expect(withPath(other, FORM.fields)).toBe(other)
    const without = errorAt(undefined)
    expect(withPath(without, FORM.fields)).toBe(without)
  })
})
