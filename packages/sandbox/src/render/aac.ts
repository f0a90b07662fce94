/** AAC from samples, by the encoder that comes with the package (WebAssembly). */
import { SAMPLE_RATE } from './sound.ts'

export type AacStream = {
  /** Each holds `FRAME_SAMPLES` samples; the first begins with the sound. */
  packets: Uint8Array<ArrayBuffer>[]
  /** The AudioSpecificConfig that a decoder needs first. */
  description: Uint8Array<ArrayBuffer>
}

export const FRAME_SAMPLES = 1024
export const CHANNELS = 2
const BITS_PER_SECOND = 96_000

/** What the module exports; pointers are numbers. */
type Coder = {
  readonly HEAPU8: Uint8Array
  _init_encoder(channels: number, rate: number, bits: number): number
  _get_encoder_extradata(context: number): number
  _get_encoder_extradata_size(context: number): number
  _get_encode_input_ptr(context: number, bytes: number): number
  _send_frame(context: number, time: bigint): number
  _receive_packet(context: number): number
  _get_encoded_data(context: number): number
  _flush_encoder_start(context: number): void
  _close_encoder(context: number): void
}

/**
 * The package runs its encoder in a worker of its own, which never answers under Bun 1.4.5; we are in a process of our
 * own already, so the module beneath is used directly. `exports` hides it: hence the path beside the main file.
 */
async function loadCoder(): Promise<Coder> {
  const place = new URL('../modules/build/aac.js', import.meta.resolve('@mediabunny/aac-encoder'))
  const { default: create } = (await import(place.href)) as { default: () => Promise<Coder> }
  return create()
}

/** One channel of samples, played on both sides. */
export async function encodeSound(samples: Float32Array): Promise<AacStream> {
  const coder = await loadCoder()
  const context = coder._init_encoder(CHANNELS, SAMPLE_RATE, BITS_PER_SECOND)
  if (context === 0) throw new Error('the AAC encoder did not start')
  const copy = (from: number, bytes: number) => coder.HEAPU8.slice(from, from + bytes) as Uint8Array<ArrayBuffer>
  const description = copy(coder._get_encoder_extradata(context), coder._get_encoder_extradata_size(context))
  const packets: Uint8Array<ArrayBuffer>[] = []
  const drain = () => {
    for (;;) {
      const bytes = coder._receive_packet(context)
      if (bytes < 0) throw new Error(`the AAC encoder failed (${bytes})`)
      if (bytes === 0) return
      packets.push(copy(coder._get_encoded_data(context), bytes))
    }
  }
  const frames = Math.ceil(samples.length / FRAME_SAMPLES)
  for (let frame = 0; frame < frames; frame++) {
    const input = new Float32Array(FRAME_SAMPLES * CHANNELS)
    for (let at = 0; at < FRAME_SAMPLES; at++) {
      input.fill(samples[frame * FRAME_SAMPLES + at] ?? 0, at * CHANNELS, (at + 1) * CHANNELS)
    }
    const place = coder._get_encode_input_ptr(context, input.byteLength)
    if (place === 0) throw new Error('the AAC encoder has no memory left')
    coder.HEAPU8.set(new Uint8Array(input.buffer), place)
    const sent = coder._send_frame(context, BigInt(frame * FRAME_SAMPLES))
    if (sent < 0) throw new Error(`the AAC encoder failed (${sent})`)
    drain()
  }
  coder._flush_encoder_start(context)
  drain()
  coder._close_encoder(context)
  // An AAC stream starts with a packet of what was before the first sample: silence, and the sound fades in anyway.
  return { packets: packets.slice(1), description }
}
