import { expect, test } from 'bun:test'
import { ASPECT_RATIOS, frameSize, planRender, SIZES } from './plan.ts'

test.each([
  ['16:9', 1280, 720, 1920, 1080],
  ['9:16', 720, 1280, 1080, 1920],
  ['1:1', 720, 720, 1080, 1080],
  ['4:3', 960, 720, 1440, 1080],
  ['3:4', 720, 960, 1080, 1440],
] as const)('%s is %d x %d at 720p and %d x %d at 1080p', (ratio, width, height, largeWidth, largeHeight) => {
  expect(frameSize(ratio, 720)).toEqual({ width, height })
  expect(frameSize(ratio, 1080)).toEqual({ width: largeWidth, height: largeHeight })
})

test('every ratio and size has even sides, which the encoder requires, quick or not', () => {
  for (const aspect_ratio of ASPECT_RATIOS) {
    for (const size of SIZES) {
      for (const quick of [false, true]) {
        const { width, height } = planRender({ ...PARTS, aspect_ratio, size, quick })
        expect([width % 2, height % 2]).toEqual([0, 0])
      }
    }
  }
})

test('frames and rate give the duration; a quick video has the same duration with far fewer frames', () => {
  expect(planRender({ ...PARTS, duration: 8 })).toMatchObject({ frames: 192, rate: 24 })
  expect(planRender({ ...PARTS, quick: true })).toMatchObject({ frames: 4, rate: 1, width: 64, height: 36 })
})

const PARTS = {
  seed: 's',
  text: 't',
  aspect_ratio: '16:9',
  size: '720p',
  duration: 4,
  audio: true,
  quick: false,
} as const
