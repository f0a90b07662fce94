import { expect, test } from 'bun:test'
import { subtitles } from './subtitles.ts'

test('times beyond an hour, and what would end a subtitle, are written as the formats require', () => {
  const segments = [{ start: 3_661.0015, end: 3_725.9999, text: ' a --> b\n\n c ' }]
  expect(subtitles({ text: '', segments }, 'srt')).toBe('1\n01:01:01,002 --> 01:02:06,000\na -> b\n c\n\n')
  expect(subtitles({ text: '', segments }, 'vtt')).toBe('WEBVTT\n\n01:01:01.002 --> 01:02:06.000\na -> b\n c\n\n')
})

test('a transcript without times is one subtitle, and other formats are none', () => {
  expect(subtitles({ text: 'Hi', duration: 2 }, 'srt')).toBe('1\n00:00:00,000 --> 00:00:02,000\nHi\n\n')
  for (const format of ['json', 'text', 'verbose_json', 'diarized_json'] as const) {
    expect(subtitles({ text: 'Hi' }, format)).toBeUndefined()
  }
})

test('what would be a tag or a reference in WebVTT is escaped there, and lines end in one way', () => {
  const segments = [{ start: 0, end: 1, text: 'R&D <b>\r\n\r\nx\r\ry' }]
  expect(subtitles({ text: '', segments }, 'srt')).toBe('1\n00:00:00,000 --> 00:00:01,000\nR&D <b>\nx\ny\n\n')
  expect(subtitles({ text: '', segments }, 'vtt')).toContain('\nR&amp;D &lt;b>\nx\ny\n\n')
})
