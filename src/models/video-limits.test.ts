import { describe, expect, test } from 'bun:test'
import type { VideoLimits } from '../config/schema/task-schema.ts'
import type { Provider } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { VideoRequest } from '../spec/video-request.ts'
import { catalogueModel } from './catalogue.ts'
import { applyVideoLimits } from './video-limits.ts'

const provider = { id: 'p', kind: 'test', video: {} } as Provider
const modelOf = (video: VideoLimits) =>
  catalogueModel({
    id: 'p/m',
    config: { families: ['video-generation'], video },
    targets: [{ provider, model: 'm' }],
    created: 0,
    when_retired: 'refuse',
  })

const orderOf = (video: VideoLimits, more: Partial<VideoRequest> = {}) =>
  applyVideoLimits(modelOf(video), { model: 'm', prompt: 'a cat', ...more })

function errorOf(video: VideoLimits, more: Partial<VideoRequest>) {
  try {
    orderOf(video, more)
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, param: error.detail.param, message: error.message }
    throw error
  }
  return undefined
}

/** The text-to-video model of the specification, section 2.5. */
const D: VideoLimits = {
  aspect_ratio: { values: ['16:9', '9:16', '1:1', '4:3', '3:4'] },
  duration: { values: [4, 8] },
  size: { values: ['720p', '1080p'] },
  audio_enable: {},
  image: 'no',
  last_image: false,
  images: 0,
  video: 'no',
}

describe('defaults', () => {
  test('missing fields are filled in: 16:9, the shortest duration, the first size, no audio, one video', () => {
    expect(orderOf(D)).toEqual({
      model: 'p/m',
      prompt: 'a cat',
      n: 1,
      aspect_ratio: '16:9',
      duration: 4,
      size: '720p',
      audio_enable: false,
    })
  })

  test("the operator's defaults take precedence", () => {
    const own: VideoLimits = {
      aspect_ratio: { values: ['1:1', '16:9'], default: '1:1' },
      duration: { minimum: 2, maximum: 10, default: 6 },
      size: { values: ['480p', '720p'], default: '720p' },
      audio_enable: { default: true },
    }
    expect(orderOf(own)).toMatchObject({ aspect_ratio: '1:1', duration: 6, size: '720p', audio_enable: true })
    expect(orderOf({ duration: { minimum: 2.5, maximum: 10 } }).duration).toBe(2.5)
    expect(orderOf({ audio_enable: { values: [true] } }).audio_enable).toBe(true)
    expect(orderOf({ aspect_ratio: { values: ['1:1', '4:3'] } }).aspect_ratio).toBe('1:1')
  })

  test('a model without limits gets the requested fields and no others', () => {
    expect(orderOf({})).toEqual({ model: 'p/m', prompt: 'a cat', n: 1 })
    const fields = { aspect_ratio: '5:4', duration: 3.5, size: '1000x800', audio_enable: true, seed: 7 }
    expect(orderOf({}, fields)).toEqual({ model: 'p/m', prompt: 'a cat', n: 1, ...fields })
  })

  test('aliases, and fields that are not for the provider, are not forwarded', () => {
    const order = orderOf({}, { seconds: '8', callback_url: 'https://x.test/', metadata: { a: { b: 1 } } })
    expect(order).toEqual({ model: 'p/m', prompt: 'a cat', n: 1, duration: 8, metadata: { a: { b: 1 } } })
  })
})

describe('allowed values, on both sides', () => {
  test.each<[Partial<VideoRequest>, string]>([
    [{ aspect_ratio: '21:9' }, '"aspect_ratio" must be one of "16:9", "9:16", "1:1", "4:3", "3:4" for'],
    [{ duration: 5 }, '"duration" must be one of 4, 8 for the model "p/m", not 5.'],
    [{ seconds: '7.9' }, '"seconds" must be one of 4, 8 for the model "p/m", not 7.9.'],
    [{ size: '480p' }, '"size" must be one of "720p", "1080p" for the model "p/m", or in pixels one of 1280x720,'],
    [{ n: 2 }, '"n" must be 1 for the model "p/m", not 2.'],
  ])('%j is rejected with the field and its allowed values', (more, message) => {
    const [param = ''] = Object.keys(more)
    const refusal = errorOf(D, more)
    expect(refusal).toMatchObject({ code: 'invalid_value', param })
    expect(refusal?.message).toContain(message)
  })

  test('each value of the sets is accepted', () => {
    for (const aspect_ratio of D.aspect_ratio?.values ?? [])
      expect(orderOf(D, { aspect_ratio })).toMatchObject({ aspect_ratio })
    for (const duration of [4, 8]) expect(orderOf(D, { duration }).duration).toBe(duration)
    for (const size of ['720p', '1080p']) expect(orderOf(D, { size }).size).toBe(size)
    for (const audio_enable of [true, false]) expect(orderOf(D, { audio_enable }).audio_enable).toBe(audio_enable)
  })

  test('a range of durations includes its bounds and nothing beyond', () => {
    const limits: VideoLimits = { duration: { minimum: 2, maximum: 10 } }
    for (const duration of [2, 10]) expect(orderOf(limits, { duration }).duration).toBe(duration)
    for (const duration of [1.99, 10.01]) {
      expect(errorOf(limits, { duration })?.message).toContain('from 2 to 10')
    }
    for (const duration of [0, -4]) expect(errorOf({}, { duration })?.message).toContain('more than 0')
  })

  test('n and images are accepted up to their limits', () => {
    expect(orderOf({ n: 4 }, { n: 4 }).n).toBe(4)
    expect(errorOf({ n: 4 }, { n: 5 })?.message).toContain('from 1 to 4')
    const two = ['https://x.test/1', 'https://x.test/2']
    expect(orderOf({ images: 2 }, { images: two }).images).toEqual(two)
    expect(errorOf({ images: 1 }, { images: two })).toMatchObject({ code: 'invalid_value', param: 'images' })
    expect('images' in orderOf({ images: 0 }, { images: [] })).toBe(false)
  })

  test('audio that cannot be switched on or off is rejected', () => {
    expect(errorOf({ audio_enable: { values: [false] } }, { audio_enable: true })).toMatchObject({
      code: 'invalid_value',
      param: 'audio_enable',
    })
  })

  test('a prompt is required if the model requires it, and limited in length', () => {
    for (const prompt of ['', '  \n']) {
      expect(errorOf(D, { prompt })).toMatchObject({ code: 'missing_required_parameter', param: 'prompt' })
    }
    expect(orderOf({ prompt_required: false }, { prompt: '' }).prompt).toBe('')
    const limits = { prompt_characters: 5 }
    expect(orderOf(limits, { prompt: '😀😀😀😀😀' }).prompt).toBe('😀😀😀😀😀')
    expect(errorOf(limits, { prompt: '😀😀😀😀😀😀' })).toMatchObject({ code: 'invalid_value', param: 'prompt' })
    expect(errorOf(limits, { negative_prompt: 'abcdef' })).toMatchObject({ param: 'negative_prompt' })
    expect(orderOf({}, { prompt: 'a'.repeat(32_000) }).prompt).toHaveLength(32_000)
    expect(errorOf({}, { prompt: 'a'.repeat(32_001) })?.message).toContain('at most 32000 characters')
  })
})

describe('seconds', () => {
  test('mean the same as duration: a number, or one in a string', () => {
    for (const seconds of [8, '8', '8.0']) expect(orderOf(D, { seconds }).duration).toBe(8)
    expect(orderOf(D, { seconds: '8', duration: 8 }).duration).toBe(8)
  })

  test.each(['', ' 8', '8s', '0x8', '8e0', '-8', 'Infinity'])('%j is rejected', (seconds) => {
    expect(errorOf({}, { seconds })).toMatchObject({ code: 'invalid_value', param: 'seconds' })
  })

  test('that contradict the duration are rejected', () => {
    const refusal = errorOf(D, { seconds: '4', duration: 8 })
    expect(refusal).toMatchObject({ code: 'invalid_value', param: 'seconds' })
    expect(refusal?.message).toContain('"seconds" is 4, but "duration" is 8')
  })
})

describe('sizes in pixels', () => {
  test.each([
    ['1280x720', '720p', '16:9'],
    ['720x1280', '720p', '9:16'],
    ['1080x1080', '1080p', '1:1'],
    ['1440x1080', '1080p', '4:3'],
    ['720x960', '720p', '3:4'],
  ])('%s is %s and %s if the model has size tiers', (size, tier, aspect_ratio) => {
    expect(orderOf(D, { size })).toMatchObject({ size: tier, aspect_ratio })
    expect(orderOf(D, { size, aspect_ratio })).toMatchObject({ size: tier, aspect_ratio })
  })

  test('that differ from the values of the model by case are rejected (specification 2.5)', () => {
    for (const size of ['720P', '1080P', '1280X720']) {
      expect(errorOf(D, { size })).toMatchObject({ code: 'invalid_value', param: 'size' })
    }
    const upper: VideoLimits = { size: { values: ['2K', '4K'] } }
    expect(orderOf(upper, { size: '4K' })).toMatchObject({ size: '4K' })
    expect(errorOf(upper, { size: '4k' })).toMatchObject({ code: 'invalid_value', param: 'size' })
    const pixels: VideoLimits = { size: { values: ['1280x720'] } }
    for (const size of ['720P', '1280X720']) expect(errorOf(pixels, { size })).toMatchObject({ param: 'size' })
  })

  test('that match no tier and ratio are rejected with a list of all that do', () => {
    for (const size of ['1281x720', '1792x1024', '854x480', '1280x', 'x720', '1280*720']) {
      const refusal = errorOf(D, { size })
      expect(refusal).toMatchObject({ code: 'invalid_value', param: 'size' })
      expect(refusal?.message).toContain('1280x720, 720x1280, 720x720, 960x720, 720x960, 1920x1080')
    }
  })

  test('that contradict the ratio are rejected', () => {
    const refusal = errorOf(D, { size: '1280x720', aspect_ratio: '9:16' })
    expect(refusal).toMatchObject({ code: 'invalid_value', param: 'size' })
    expect(refusal?.message).toContain('"1280x720" is 16:9, but "aspect_ratio" is 9:16')
  })

  test('are as close to their ratio as even sides allow', () => {
    expect(orderOf({ size: { values: ['480p'] } }, { size: '854x480' })).toMatchObject({
      size: '480p',
      aspect_ratio: '16:9',
    })
  })

  test('are unchanged if the model accepts them; a tier is then converted to pixels', () => {
    const limits: VideoLimits = { size: { values: ['1280x720', '720x1280'] } }
    expect(orderOf(limits)).toMatchObject({ size: '1280x720' })
    expect(orderOf(limits, { size: '720x1280' })).toEqual({ model: 'p/m', prompt: 'a cat', n: 1, size: '720x1280' })
    expect(orderOf(limits, { size: '720p', aspect_ratio: '9:16' })).toMatchObject({ size: '720x1280' })
    expect(errorOf(limits, { size: '720x1280', aspect_ratio: '16:9' })).toMatchObject({ param: 'size' })
  })

  test('follow the ratio if only the ratio was requested', () => {
    const limits: VideoLimits = {
      size: { values: ['1280x720', '720x1280'] },
      aspect_ratio: { values: ['16:9', '9:16'] },
    }
    expect(orderOf(limits, { aspect_ratio: '9:16' })).toMatchObject({ size: '720x1280', aspect_ratio: '9:16' })
    expect(orderOf(limits, { size: '720x1280' })).toMatchObject({ size: '720x1280', aspect_ratio: '9:16' })
    const square = errorOf({ size: { values: ['1280x720'] } }, { aspect_ratio: '1:1' })
    expect(square).toMatchObject({ code: 'invalid_value', param: 'aspect_ratio' })
    expect(square?.message).toContain('its sizes are 1280x720')
  })
})

describe('fields that a model does not support', () => {
  test.each<[keyof VideoRequest, VideoLimits, unknown]>([
    ['image', { image: 'no' }, 'https://x.test/a.png'],
    ['video', { video: 'no' }, 'https://x.test/a.mp4'],
    ['last_image', { last_image: false }, 'https://x.test/a.png'],
    ['images', { images: 0 }, ['https://x.test/a.png']],
    ['negative_prompt', { negative_prompt: false }, 'blur'],
    ['seed', { seed: false }, 0],
  ])('%s is rejected, not omitted', (param, limits, value) => {
    expect(errorOf(limits, { [param]: value })).toEqual({
      code: 'unsupported_parameter',
      param,
      message: `The model "p/m" takes no "${param}".`,
    })
    expect(orderOf({}, { [param]: value })).toMatchObject({ [param]: value })
  })

  test('an image or a video may be required', () => {
    expect(errorOf({ image: 'required' }, {})).toMatchObject({ code: 'missing_required_parameter', param: 'image' })
    expect(errorOf({ video: 'required' }, {})).toMatchObject({ code: 'missing_required_parameter', param: 'video' })
  })
})

describe('media', () => {
  test.each([
    'https://x.test/a.png?b=c',
    'HTTP://x.test/',
    'data:image/png;base64,iVBORw0KGgo=',
    'data:;base64,AAAA',
    'data:image/svg+xml;charset=utf-8;base64,AAAA',
    'iVBORw0KGgo=',
    'AA==',
  ])('%s has an accepted form', (image) => {
    expect(orderOf({}, { image, last_image: image, video: image, images: [image] })).toMatchObject({
      image,
      video: image,
    })
  })

  test.each([
    'cat.png',
    'ftp://x.test/a.png',
    'file:///etc/passwd',
    'https://',
    'https://x .test/',
    `https://x.test/${'a'.repeat(8_192)}`,
    'data:image/png,abc',
    'data:image/png;base64,',
    'data:image/png;base64,A===',
    'data:image/png;base64,AAA\nAAAA',
    'AAAAA',
    'AA-_',
    '====',
  ])('%j is rejected with its position', (value) => {
    for (const [more, param] of [
      [{ image: value }, 'image'],
      [{ last_image: value }, 'last_image'],
      [{ video: value }, 'video'],
      [{ images: ['AAAA', value] }, 'images[1]'],
    ] as const) {
      expect(errorOf({}, more as Partial<VideoRequest>)).toMatchObject({ code: 'invalid_value', param })
    }
  })

  test('a large one is checked quickly', () => {
    const image = `data:image/png;base64,${'A'.repeat(32 * 1024 * 1024)}`
    const started = performance.now()
    orderOf({}, { image })
    expect(errorOf({}, { image: `${image}AAA!` })).toMatchObject({ param: 'image' })
    expect(performance.now() - started).toBeLessThan(10_000)
  })
})
