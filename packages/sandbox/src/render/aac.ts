/** Encodes samples as AAC, with the encoder of a package (WebAssembly). */
import { SAMPLE_RATE } from './sound.ts'

export type AacStream = {
  /** Each holds `FRAME_SAMPLES` samples; the first packet is the beginning of the sound. */
  packets: Uint8Array<ArrayBuffer>[]
  /** The AudioSpecificConfig, which a decoder needs first. */
  description: Uint8Array<ArrayBuffer>
}

export const FRAME_SAMPLES = 1024
export const CHANNELS = 2
const BITS_PER_SECOND = 96_000

/** The exports of the module; pointers are numbers. */
type EncoderModule = {
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
 * The package runs its encoder in a worker, which never responds under Bun 1.4.5. The renderer is a separate process
 * anyway, so it uses the inner module directly. `exports` hides that module: hence the path relative to the main file.
 */
async function loadEncoder(): Promise<EncoderModule> {
  const path = new URL('../modules/build/aac.js', import.meta.resolve('@mediabunny/aac-encoder'))
  const { default: create } = (await import(path.href)) as { default: () => Promise<EncoderModule> }
  return create()
}

/** Encodes one channel of samples as two equal channels. */
export async function encodeSound(samples: Float32Array): Promise<AacStream> {
  const encoder = await loadEncoder()
  const context = encoder._init_encoder(CHANNELS, SAMPLE_RATE, BITS_PER_SECOND)
  if (context === 0) throw new Error('the AAC encoder did not start')
  const copy = (from: number, bytes: number) => encoder.HEAPU8.slice(from, from + bytes) as Uint8Array<ArrayBuffer>
  const description = copy(encoder._get_encoder_extradata(context), encoder._get_encoder_extradata_size(context))
  const packets: Uint8Array<ArrayBuffer>[] = []
  const drain = () => {
    for (;;) {
      const bytes = encoder._receive_packet(context)
      if (bytes < 0) throw new Error(`the AAC encoder failed (${bytes})`)
      if (bytes === 0) return
      packets.push(copy(encoder._get_encoded_data(context), bytes))
    }
  }
  const frames = Math.ceil(samples.length / FRAME_SAMPLES)
  for (let frame = 0; frame < frames; frame++) {
    const input = new Float32Array(FRAME_SAMPLES * CHANNELS)
    for (let at = 0; at < FRAME_SAMPLES; at++) {
      input.fill(samples[frame * FRAME_SAMPLES + at] ?? 0, at * CHANNELS, (at + 1) * CHANNELS)
    }
    const pointer = encoder._get_encode_input_ptr(context, input.byteLength)
    if (pointer === 0) throw new Error('the AAC encoder has no memory left')
    encoder.HEAPU8.set(new Uint8Array(input.buffer), pointer)
    const sent = encoder._send_frame(context, BigInt(frame * FRAME_SAMPLES))
    if (sent < 0) throw new Error(`the AAC encoder failed (${sent})`)
    drain()
  }
  encoder._flush_encoder_start(context)
  drain()
  encoder._close_encoder(context)
  // The first packet of an AAC stream precedes the first sample: it is silence, and the sound fades in anyway.
  return { packets: packets.slice(1), description }
}
