import { describe, expect, it } from 'bun:test'
import { boundedUnits } from './usage.ts'

describe('units as a provider reports them', () => {
  it('stay as they are where they fit', () => {
    const units = {
      input_tokens: 100,
      output_tokens: 50,
      cached_tokens: 60,
      cache_write_tokens: 40,
      reasoning_tokens: 50,
    }
    expect(boundedUnits(units)).toEqual(units)
    const video = { input_tokens: 0, output_tokens: 0, videos: 1, video_seconds: 4.5 }
    expect(boundedUnits(video)).toEqual(video)
  })

  it('are finite, whole and not negative', () => {
    expect(boundedUnits({ input_tokens: -1, output_tokens: Number.NaN })).toEqual({ input_tokens: 0, output_tokens: 0 })
    expect(boundedUnits({ input_tokens: 1e18, output_tokens: 1.4 })).toEqual({
      input_tokens: 1_000_000_000,
      output_tokens: 1,
    })
    const { images, video_seconds, searches } = boundedUnits({
      input_tokens: 0,
      output_tokens: 0,
      images: 1e18,
      video_seconds: Number.NaN,
      searches: -1,
    })
    // Unknown, and so is its price.
    expect(video_seconds).toBeUndefined()
    expect({ images, searches }).toEqual({ images: 1_000_000_000, searches: 0 })
  })

  it('have no parts that are together more than the whole', () => {
    expect(
      boundedUnits({
        input_tokens: 100,
        output_tokens: 10,
        cached_tokens: 80,
        cache_write_tokens: 15,
        cache_write_1h_tokens: 1e15,
        input_audio_tokens: 100,
        output_audio_tokens: 4,
        reasoning_tokens: 1e15,
      }),
    ).toEqual({
      input_tokens: 100,
      output_tokens: 10,
      cached_tokens: 80,
      cache_write_tokens: 15,
      cache_write_1h_tokens: 5,
      input_audio_tokens: 0,
      output_audio_tokens: 4,
      reasoning_tokens: 6,
    })
  })
})
