/** Vendors of speech and transcription only: ElevenLabs, Deepgram, AssemblyAI. */
import { vendor } from '../vendor-row.ts'

export const ELEVENLABS = vendor({
  baseUrl: 'https://api.elevenlabs.io',
  load: async ({ key, fetch }) => (await import('@ai-sdk/elevenlabs')).createElevenLabs({ apiKey: key, fetch }),
  speech: {
    factory: (sdk) => sdk.speech,
    // The package's `pcm` has a rate that no other vendor has.
    formats: { mp3: 'mp3', pcm: 'pcm_24000' },
    has_speed: true,
  },
  transcription: {
    factory: (sdk) => sdk.transcription,
    options: { language: 'languageCode' },
    segments: 'words',
    duration_of_words: true,
  },
})

export const DEEPGRAM = vendor({
  baseUrl: 'https://api.deepgram.com',
  load: async ({ key, fetch }) => (await import('@ai-sdk/deepgram')).createDeepgram({ apiKey: key, fetch }),
  speech: {
    factory: (sdk) => sdk.speech,
    formats: { mp3: 'mp3', wav: 'wav', pcm: 'pcm', opus: 'opus', flac: 'flac', aac: 'aac' },
    has_speed: true,
  },
  transcription: {
    factory: (sdk) => sdk.transcription,
    options: { language: 'language' },
    segments: 'words',
    // Without it, it returns words only, and takes all audio for English where no language is named.
    always: { smartFormat: true },
    detects: { detectLanguage: true },
  },
})

export const ASSEMBLYAI = vendor({
  baseUrl: 'https://api.assemblyai.com',
  load: async ({ key, fetch }) => (await import('@ai-sdk/assemblyai')).createAssemblyAI({ apiKey: key, fetch }),
  transcription: {
    factory: (sdk) => sdk.transcription,
    options: { language: 'languageCode', prompt: 'prompt', temperature: 'temperature' },
    segments: 'words',
    detects: { languageDetection: true },
  },
})
