/** Muxes frames and sound into one MP4 with its index first, so that it can play while it is downloaded. */
import type { EncodedVideoPacketSource } from 'mediabunny'
import { type AacStream, CHANNELS, FRAME_SAMPLES } from './aac.ts'
import { WATERMARK } from './picture.ts'
import type { RenderPlan } from './plan.ts'
import { SAMPLE_RATE } from './sound.ts'

type MuxParts = { plan: RenderPlan; pictures: Uint8Array<ArrayBuffer>; sound: AacStream | undefined }

/** `pictures` is an MP4 with one track; the plan determines its timestamps. */
export async function muxVideo({ plan, pictures, sound }: MuxParts): Promise<Uint8Array> {
  const { BufferTarget, EncodedAudioPacketSource, EncodedVideoPacketSource, Mp4OutputFormat, Output } = await import(
    'mediabunny'
  )
  const target = new BufferTarget()
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: 'in-memory' }), target })
  const video = new EncodedVideoPacketSource('avc')
  const audio = sound ? new EncodedAudioPacketSource('aac') : undefined
  output.addVideoTrack(video, { frameRate: plan.rate })
  if (audio) output.addAudioTrack(audio)
  const comment = plan.quick ? `${WATERMARK}; quick=1: a small stand-in` : WATERMARK
  output.setMetadataTags({ title: plan.text.slice(0, 200), comment })
  await output.start()
  await addPictures(video, plan, pictures)
  if (sound && audio) await addSound(audio, plan, sound)
  await output.finalize()
  if (!target.buffer) throw new Error('the file was not written')
  return withoutTimes(new Uint8Array(target.buffer))
}

async function addPictures(
  video: EncodedVideoPacketSource,
  { rate, frames }: RenderPlan,
  pictures: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const { BufferSource, EncodedPacket, EncodedPacketSink, Input, MP4 } = await import('mediabunny')
  const input = new Input({ source: new BufferSource(pictures), formats: [MP4] })
  const track = await input.getPrimaryVideoTrack()
  const decoderConfig = await track?.getDecoderConfig()
  if (!track || !decoderConfig) throw new Error('the H.264 encoder made no track')
  let at = 0
  for await (const { data } of new EncodedPacketSink(track).packets()) {
    const type = isKeyFrame(data) ? 'key' : 'delta'
    await video.add(new EncodedPacket(data, type, at / rate, 1 / rate), at === 0 ? { decoderConfig } : {})
    at++
  }
  if (at !== frames) throw new Error(`the H.264 encoder made ${at} frames of ${frames}`)
  video.close()
}

/** The encoder's own MP4 marks every frame as a key frame; a player that seeks to a wrong one shows rubbish. */
function isKeyFrame(frame: Uint8Array): boolean {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  // NAL units: four bytes of length, then the content. The low five bits of its first byte are the type: 5 is an IDR picture.
  for (let at = 0; at + 5 <= frame.length; at += 4 + view.getUint32(at)) {
    if ((view.getUint8(at + 4) & 0x1f) === 5) return true
  }
  return false
}

async function addSound(
  audio: import('mediabunny').EncodedAudioPacketSource,
  { rate, frames }: RenderPlan,
  { packets, description }: AacStream,
): Promise<void> {
  const { EncodedPacket } = await import('mediabunny')
  const end = frames / rate
  const decoderConfig = { codec: 'mp4a.40.2', numberOfChannels: CHANNELS, sampleRate: SAMPLE_RATE, description }
  for (const [at, data] of packets.entries()) {
    const start = (at * FRAME_SAMPLES) / SAMPLE_RATE
    if (start >= end) break
    // The last packet may hold more samples than are played: the track is as long as the video.
    const length = Math.min(FRAME_SAMPLES / SAMPLE_RATE, end - start)
    await audio.add(new EncodedPacket(data, 'key', start, length), at === 0 ? { decoderConfig } : {})
  }
  audio.close()
}

/** Boxes that contain the boxes below. */
const CONTAINERS = new Set(['moov', 'trak', 'mdia'])
/** Boxes that begin with version and flags, then the times of creation and of the last modification. */
const TIMED = new Set(['mvhd', 'tkhd', 'mdhd'])

/** Clears the times of writing, so that the same video is the same bytes. Changes `file` in place and returns it. */
function withoutTimes(file: Uint8Array): Uint8Array {
  clearTimes(file, new DataView(file.buffer, file.byteOffset, file.byteLength))
  return file
}

function clearTimes(file: Uint8Array, view: DataView): void {
  for (let at = 0; at + 8 <= view.byteLength; ) {
    const size = view.getUint32(at)
    const end = size >= 8 ? at + size : view.byteLength
    const kind = String.fromCharCode(...file.subarray(at + 4, at + 8))
    if (CONTAINERS.has(kind)) {
      clearTimes(file.subarray(at + 8, end), new DataView(view.buffer, view.byteOffset + at + 8, end - at - 8))
    }
    // Version 1 has times of 64 bits.
    if (TIMED.has(kind)) file.fill(0, at + 12, at + 12 + (view.getUint8(at + 8) === 1 ? 16 : 8))
    // A size of 0 means up to the end, 1 that a 64-bit size follows: neither occurs before the index here.
    at = end
  }
}
