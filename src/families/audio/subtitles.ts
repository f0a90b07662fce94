/** Writes a transcript with times as subtitles: SubRip (`srt`) and WebVTT (W3C, 2019). */
import type { Transcript, TranscriptFormat, TranscriptSegment } from '../../spec/audio-request.ts'

/** Undefined where the format is none of subtitles. A transcript without times is one subtitle. */
export function subtitles(transcript: Transcript, format: TranscriptFormat): string | undefined {
  if (format !== 'srt' && format !== 'vtt') return undefined
  const { segments = [], text, duration = 0 } = transcript
  const timed = segments.length > 0 ? segments : [{ start: 0, end: duration, text }]
  const isVtt = format === 'vtt'
  const cues = timed.map((segment, index) =>
    isVtt ? `${cue({ ...segment, text: vttText(segment.text) }, '.')}\n\n` : `${index + 1}\n${cue(segment, ',')}\n\n`,
  )
  return `${isVtt ? 'WEBVTT\n\n' : ''}${cues.join('')}`
}

/** WebVTT has tags and character references (section 4.2.2): "a <b> c" would be shown as "a c". */
const vttText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** A blank line ends a subtitle, and `-->` in a text would be read as times. */
const cue = ({ start, end, text }: TranscriptSegment, point: string): string =>
  `${time(start, point)} --> ${time(end, point)}\n${text
    .trim()
    .replace(/\r\n?/g, '\n')
    .replace(/\n\s*\n/g, '\n')
    .replaceAll('-->', '->')}`

function time(seconds: number, point: string): string {
  const ms = Math.round(Math.max(0, Number(seconds) || 0) * 1000)
  const two = (value: number) => String(value).padStart(2, '0')
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60]
  return `${two(hours)}:${two(minutes)}:${two(rest)}${point}${String(ms % 1000).padStart(3, '0')}`
}
