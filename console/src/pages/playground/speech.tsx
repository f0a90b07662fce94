/** Speaks a text: plays the audio and offers it as a file. */
import { useEffect, useState } from 'react'
import { eventsOf } from '../../api/events.ts'
import { bytes } from '../../lib/format.ts'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { type FamilyProps, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { type SpokenUnits, speechCost, useModelFacts } from './model-limits.ts'
import { useCall } from './use-call.ts'

const TYPES: Record<string, string> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  pcm: 'audio/pcm',
}
const MAX_CHARACTERS = 100_000
const MAX_AUDIO_BYTES = 200_000_000
/** Where a model lists no voices: most know this one. */
const COMMON_VOICE = 'alloy'

type Spoken = { audio: Blob; format: string; units: SpokenUnits }

export function Speech({ model, family, project, stored, onModel }: FamilyProps) {
  const [input, setInput] = useState(stored.join('\n'))
  const [typedVoice, setVoice] = useState('')
  const [chosenFormat, setFormat] = useState('')
  const [speed, setSpeed] = useState('')
  const [instructions, setInstructions] = useState('')
  const { called, error, isRunning, run, stop } = useCall<Spoken>()
  const [facts] = useModelFacts([model])
  const { speech, price } = facts ?? {}
  const formats = speech?.formats ?? Object.keys(TYPES)
  const format = formats.includes(chosenFormat) ? chosenFormat : formats.includes('mp3') ? 'mp3' : (formats[0] ?? '')
  const voices = speech?.voices
  const voice = voices && !voices.includes(typedVoice) ? (voices[0] ?? '') : typedVoice.trim() || COMMON_VOICE
  const characters = [...input].length
  const problem = problemOf({ characters, most: speech?.characters ?? MAX_CHARACTERS, speed, voice })
  const body = {
    model,
    input,
    voice,
    response_format: format,
    // Events end with the usage, and say what went wrong in the middle of the audio.
    stream_format: 'sse',
    ...(speed.trim() && { speed: Number(speed) }),
    ...(instructions.trim() && { instructions }),
  }
  const call = { path: '/v1/audio/speech', body }
  const read = (response: Response) => readSpeech(response, { format, characters })
  return (
    <div className="play-order">
      <OrderForm
        act="Speak"
        call={call}
        isRunning={isRunning}
        problem={problem}
        error={error}
        onSubmit={() => void run({ ...call, project, read })}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <TextArea label="Text" rows={6} value={input} onChange={setInput} />
        <div className="play-pair">
          {voices ? (
            <Select
              label="Voice"
              value={voice}
              options={voices.map((value) => ({ value, label: value }))}
              onChange={setVoice}
            />
          ) : (
            <TextField
              label="Voice"
              maxLength={200}
              placeholder={COMMON_VOICE}
              value={typedVoice}
              onChange={setVoice}
            />
          )}
          <Select
            label="Format"
            value={format}
            options={formats.map((value) => ({ value, label: value }))}
            onChange={setFormat}
          />
        </div>
        <TextField
          label="Speed"
          help="From 0.25 to 4."
          inputMode="decimal"
          placeholder="1"
          value={speed}
          onChange={setSpeed}
        />
        <TextArea
          label="Instructions"
          help="How it is spoken, where the model understands it."
          rows={2}
          maxLength={10_000}
          value={instructions}
          onChange={setInstructions}
        />
      </OrderForm>
      <Result
        called={called && { ...called, cost: speechCost(called.data.units, price ?? null) }}
        isRunning={isRunning}
        empty="The audio appears here."
      >
        {called && <Player {...called.data} />}
      </Result>
    </div>
  )
}

function Player({ audio, format }: Spoken) {
  const [address, setAddress] = useState<string>()
  const [isPlayable, setPlayable] = useState(true)
  useEffect(() => {
    const made = URL.createObjectURL(audio)
    setAddress(made)
    // No browser plays samples without a head.
    setPlayable(format !== 'pcm')
    return () => URL.revokeObjectURL(made)
  }, [audio, format])
  if (address === undefined) return null
  return (
    <div className="stack-small">
      {isPlayable ? (
        // biome-ignore lint/a11y/useMediaCaption: the text stands beside it
        <audio className="play-audio" controls src={address} onError={() => setPlayable(false)} aria-label="Speech" />
      ) : (
        <p className="soft">This browser does not play {format}. Download the file to listen to it.</p>
      )}
      <div className="row">
        <a className="button" data-size="small" href={address} download={`speech.${format}`}>
          Download
        </a>
        <span className="small faint">
          {format}, {bytes(audio.size)}
        </span>
      </div>
    </div>
  )
}

type SpeechEvent = {
  type?: string
  audio?: string
  error?: { message?: string }
  usage?: { input_tokens: number; output_tokens: number }
}

/** Throws Error where the audio is cut off. */
async function readSpeech(response: Response, { format, characters }: { format: string; characters: number }) {
  const parts: Uint8Array<ArrayBuffer>[] = []
  let size = 0
  for await (const { data } of eventsOf(response)) {
    const { type, audio, error, usage } = JSON.parse(data) as SpeechEvent
    if (error) throw new Error(error.message ?? 'The stream ended with an error.')
    if (audio !== undefined) {
      const part = Uint8Array.from(atob(audio), (character) => character.charCodeAt(0))
      size += part.length
      if (size > MAX_AUDIO_BYTES) throw new Error(`The audio has more than ${bytes(MAX_AUDIO_BYTES)}.`)
      parts.push(part)
    }
    if (type === 'speech.audio.done') {
      const { input_tokens = 0, output_tokens = 0 } = usage ?? {}
      const units = { characters, input_tokens, output_tokens }
      return { audio: new Blob(parts, { type: TYPES[format] ?? 'application/octet-stream' }), format, units }
    }
  }
  throw new Error('The audio ended before it was complete.')
}

type Typed = { characters: number; most: number; speed: string; voice: string }

function problemOf({ characters, most, speed, voice }: Typed): string | undefined {
  if (characters === 0) return 'Type a text.'
  if (characters > most) return `At most ${most.toLocaleString()} characters; there are ${characters.toLocaleString()}.`
  if (/\s/.test(voice)) return 'The name of a voice has no spaces.'
  const isSpeed = speed.trim() === '' || (Number(speed) >= 0.25 && Number(speed) <= 4)
  return isSpeed ? undefined : 'The speed is a number from 0.25 to 4.'
}
