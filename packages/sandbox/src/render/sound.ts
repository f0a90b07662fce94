/** Composes a soft sequence of tones, determined by a seed. */
import { createRandom } from '../random.ts'

/** The rate that nearly all players and encoders support. */
export const SAMPLE_RATE = 48_000

/** Semitones of a scale without half steps, in which any tone can follow any other. */
const SCALE = [0, 2, 4, 7, 9, 12, 14, 16]
const LOWEST_HERTZ = 196
/** A tone starts every half second and fades over a little longer. */
const TONE_SECONDS = 0.5
const FADE_SECONDS = 0.9
const ATTACK_SECONDS = 0.03
/** Far below full scale, so that nobody is startled. */
const LOUDNESS = 0.16
/** Both ends of the track fade, so that nothing clicks. */
const EDGE_SECONDS = 0.05

/** Samples from -1 to 1, one channel. */
export function composeSound(seed: string, seconds: number): Float32Array<ArrayBuffer> {
  const random = createRandom(`sound:${seed}`)
  const samples = new Float32Array(seconds * SAMPLE_RATE)
  for (let start = 0; start < seconds; start += TONE_SECONDS) {
    const hertz = LOWEST_HERTZ * 2 ** (random.pick(SCALE) / 12)
    addTone(samples, { hertz, from: Math.round(start * SAMPLE_RATE) })
  }
  const edge = EDGE_SECONDS * SAMPLE_RATE
  for (let at = 0; at < edge; at++) {
    const last = samples.length - 1 - at
    samples[at] = ((samples[at] ?? 0) * at) / edge
    samples[last] = ((samples[last] ?? 0) * at) / edge
  }
  return samples
}

function addTone(samples: Float32Array, { hertz, from }: { hertz: number; from: number }): void {
  const length = Math.min(samples.length - from, Math.round(FADE_SECONDS * SAMPLE_RATE))
  for (let at = 0; at < length; at++) {
    const seconds = at / SAMPLE_RATE
    const turn = 2 * Math.PI * hertz * seconds
    const envelope = Math.min(1, seconds / ATTACK_SECONDS) * (1 - seconds / FADE_SECONDS) ** 2
    const wave = Math.sin(turn) + 0.3 * Math.sin(2 * turn)
    samples[from + at] = (samples[from + at] ?? 0) + LOUDNESS * envelope * wave
  }
}
