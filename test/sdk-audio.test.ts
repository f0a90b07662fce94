/** Speech and transcription of the AI SDK before the sandbox: three majors with `@ai-sdk/openai`, and the client package of this project. */
import { afterAll, describe, expect, it } from 'bun:test'
import { createOpenAI } from '@ai-sdk/openai'
import { generateSpeech, transcribe } from 'ai'
import { experimental_generateSpeech as generateSpeech5, experimental_transcribe as transcribe5 } from 'ai-5'
import { experimental_generateSpeech as generateSpeech6, experimental_transcribe as transcribe6 } from 'ai-6'
import { createOpenAI as createOpenAI2 } from 'ai-sdk-openai-2'
import { createOpenAI as createOpenAI3 } from 'ai-sdk-openai-3'
import { createGatehouse } from '../packages/ai-sdk/src/gatehouse.ts'
import { openPort } from './kit/served.ts'

const port = await openPort()
afterAll(() => port.close())
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

const TEXT = 'Good morning. How are you?'
const settings = { apiKey: port.token, baseURL: port.url }

// One test for all: what is used here has the same types in each major, which TypeScript cannot know.
type Sdk = { generateSpeech: typeof generateSpeech; transcribe: typeof transcribe; createOpenAI: typeof createOpenAI }
const MAJORS = {
  'ai 7': { generateSpeech, transcribe, createOpenAI },
  'ai 6': { generateSpeech: generateSpeech6, transcribe: transcribe6, createOpenAI: createOpenAI3 } as unknown as Sdk,
  'ai 5': { generateSpeech: generateSpeech5, transcribe: transcribe5, createOpenAI: createOpenAI2 } as unknown as Sdk,
}

describe.each(Object.entries(MAJORS))('%s with @ai-sdk/openai', (_, sdk) => {
  const openai = sdk.createOpenAI(settings)

  it.each(['mp3', 'wav'])('speaks %s, and gets its text back with times', async (outputFormat) => {
    const model = openai.speech('sandbox/speech')
    const { audio } = await sdk.generateSpeech({ model, text: TEXT, voice: 'tone', outputFormat, maxRetries: 0 })
    expect(audio.mediaType).toStartWith('audio/')
    const options = { timestampGranularities: ['segment'] }
    const transcript = await sdk.transcribe({
      model: openai.transcription('sandbox/transcription'),
      audio: audio.uint8Array,
      providerOptions: { openai: options },
      maxRetries: 0,
    })
    expect(transcript.text).toBe(TEXT)
  })

  it('throws the error of the gateway', async () => {
    const model = openai.speech('sandbox/general')
    const thrown = await sdk.generateSpeech({ model, text: TEXT, maxRetries: 0 }).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ statusCode: 400, data: { error: { code: 'unsupported_endpoint' } } })
  })
})

describe('@gatehouse/ai-sdk', () => {
  const gatehouse = createGatehouse(settings)

  it('speaks, and gets the text back, with times where they are asked for', async () => {
    const { audio } = await generateSpeech({
      model: gatehouse.speech('sandbox/speech'),
      text: TEXT,
      outputFormat: 'wav',
    })
    expect(audio.mediaType).toBe('audio/wav')
    const model = gatehouse.transcription('sandbox/transcription')
    expect(await transcribe({ model, audio: audio.base64 })).toMatchObject({ text: TEXT, segments: [] })
    const options = { responseFormat: 'verbose_json', timestampGranularities: ['segment'] }
    const timed = await transcribe({ model, audio: audio.uint8Array, providerOptions: { gatehouse: options } })
    expect(timed.segments.map(({ text }) => text.trim())).toEqual(['Good morning.', 'How are you?'])
    expect(timed.durationInSeconds).toBeGreaterThan(1)
  })

  it('throws the error of the gateway with its code', async () => {
    const speech = { model: gatehouse.speech('sandbox/speech'), text: TEXT, outputFormat: 'flac', maxRetries: 0 }
    expect(await generateSpeech(speech).catch((error: unknown) => error)).toMatchObject({
      statusCode: 400,
      data: { error: { code: 'invalid_value', param: 'response_format' } },
    })
    const heard = { model: gatehouse.transcription('no/such'), audio: new Uint8Array(8), maxRetries: 0 }
    expect(await transcribe(heard).catch((error: unknown) => error)).toMatchObject({ statusCode: 404 })
  })
})
